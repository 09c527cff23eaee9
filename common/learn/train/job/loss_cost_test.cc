#include "common/learn/train/job/loss_cost.h"

#include <string>

#include "absl/time/time.h"
#include "common/core/base/status_matchers.h"
#include "common/net/cluster/tf_config.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr char kServers[] =
    R"({"cluster":{"chief":["h:1"],"worker":["h:2"],"ps":["h:3"]},
        "task":{"type":"chief","index":0}})";
constexpr char kWorkers[] =
    R"({"cluster":{"worker":["h:1","h:2"]},"task":{"type":"worker","index":0}})";

std::string Describe(const std::string& text, const char* tf_config,
                     absl::Duration server_return_timeout = absl::Minutes(1)) {
  proto::TrainingJob job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &job));
  const absl::StatusOr<ClusterConfig> config =
      ParseTfConfig(tf_config, "TF_CONFIG");
  EXPECT_OK(config);
  return config.ok() ? DescribeLossCost(job, *config, server_return_timeout)
                     : "";
}

TEST(LossCostTest, WithoutABackupARestartBeginsFromTheStart) {
  EXPECT_EQ(Describe("", ""),
            "the job, started again, begins from the start, because it has no "
            "backup_and_restore callback");
  EXPECT_EQ(Describe("", kWorkers),
            "a lost worker ends all workers; the job, started again, begins "
            "from the start, because it has no backup_and_restore callback");
}

TEST(LossCostTest, ABackupIsNamedWithItsFrequency) {
  EXPECT_THAT(
      Describe("callbacks { backup_and_restore { backup_dir: \"b\" } }", ""),
      HasSubstr("continues from its backup in b, written after each epoch "
                "(save_each_epoch)"));
  EXPECT_THAT(Describe("callbacks { backup_and_restore { backup_dir: \"b\" "
                       "save_freq: 10 save_each_epoch: false } }",
                       kWorkers),
              HasSubstr("written every 10 steps (save_freq)"));
}

TEST(LossCostTest, WeightsOfAKerasFileNeedCheckpoints) {
  const std::string model = "model { keras: \"m.keras\" }";
  EXPECT_THAT(Describe(model, kServers),
              HasSubstr("a lost parameter server ends the job: the first "
                        "weights come from m.keras"));
  EXPECT_THAT(Describe(model + "callbacks { model_checkpoint { filepath: "
                               "\"b.keras\" } }",
                       kServers),
              HasSubstr("ends the job"));
  EXPECT_THAT(Describe(model + "callbacks { model_checkpoint { filepath: "
                               "\"b\" } }",
                       kServers),
              HasSubstr("the steps since the newest checkpoint"));
}

TEST(LossCostTest, ALostServerCostsWhatItsSettingsSay) {
  EXPECT_THAT(Describe("", kServers, absl::ZeroDuration()),
              HasSubstr("a lost parameter server ends the job "
                        "(--server_return_timeout=0"));
  EXPECT_THAT(Describe("", kServers),
              HasSubstr("back within 1m costs all training so far, because "
                        "nothing writes checkpoints (set recovery_dir)"));
  EXPECT_THAT(
      Describe("callbacks { model_checkpoint { directory: \"c\" } }", kServers),
      HasSubstr("costs the steps since the newest checkpoint"));
  EXPECT_THAT(
      Describe("strategy { parameter_server { recovery_dir: \"r\" "
               "recovery_interval_seconds: 5 } }",
               kServers),
      HasSubstr("costs about 5 s of training (recovery_interval_seconds)"));
}

}  // namespace
}  // namespace muster
