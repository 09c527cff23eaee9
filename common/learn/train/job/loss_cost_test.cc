#include "common/learn/train/job/loss_cost.h"

#include <string>

#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/learn/train/job/testing/parse_job_message.h"
#include "common/net/cluster/tf_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kServers[] =
    R"({"cluster":{"chief":["h:1"],"worker":["h:2"],"ps":["h:3"]},
        "task":{"type":"chief","index":0}})";
constexpr char kWorkers[] =
    R"({"cluster":{"worker":["h:1","h:2"]},"task":{"type":"worker","index":0}})";

std::string Describe(
    const std::string& text, const char* tf_config,
    absl::Duration server_return_timeout = absl::Minutes(1),
    absl::Duration coordinator_return_timeout = absl::ZeroDuration()) {
  proto::TrainingJob job;
  EXPECT_TRUE(ParseJobMessage(text, &job));
  const absl::StatusOr<ClusterConfig> config =
      ParseTfConfig(tf_config, "TF_CONFIG");
  EXPECT_OK(config);
  return config.ok() ? DescribeLossCost(job, *config, server_return_timeout,
                                        coordinator_return_timeout)
                     : "";
}

TEST(LossCostTest, ACoordinatorCanReturnIfThereIsAJournal) {
  EXPECT_THAT(Describe("", kServers),
              HasSubstr("; a lost coordinator ends the job; "));
  EXPECT_THAT(
      Describe("", kServers, absl::Minutes(1), absl::Minutes(2)),
      HasSubstr("; a lost coordinator that is back within 2m costs at most a "
                "second of training; "));
  EXPECT_THAT(
      Describe("strategy { parameter_server { dispatch_batches: true } }",
               kServers, absl::Minutes(1), absl::Minutes(2)),
      HasSubstr("; a lost coordinator ends the job; "));
}

TEST(LossCostTest, WithoutABackupAllTrainingWouldBeRepeated) {
  EXPECT_EQ(Describe("", ""),
            "if this run is interrupted, it cannot resume: all of its training "
            "would be repeated (a backup_and_restore callback in the job file "
            "prevents that)");
  EXPECT_THAT(Describe("", kWorkers),
              StartsWith("a lost worker ends all workers (--min_workers lets "
                         "the others continue); if this run is interrupted, it "
                         "cannot resume"));
}

TEST(LossCostTest, AServerMayRestoreItsLog) {
  const absl::StatusOr<ClusterConfig> config =
      ParseTfConfig(kServers, "TF_CONFIG");
  ASSERT_OK(config);
  EXPECT_THAT(DescribeLossCost({}, *config, absl::Minutes(1),
                               absl::ZeroDuration(), /*min_workers=*/0,
                               /*servers_keep_logs=*/true),
              StartsWith("a lost parameter server that is back within 1m costs "
                         "nothing if it restores its log, and otherwise all "
                         "training so far"));
}

TEST(LossCostTest, ACopyTakesOverFromAServer) {
  const absl::StatusOr<ClusterConfig> config =
      ParseTfConfig(kServers, "TF_CONFIG");
  ASSERT_OK(config);
  proto::TrainingJob job;
  job.mutable_strategy()->mutable_parameter_server()->set_ps_copies(2);
  EXPECT_THAT(
      DescribeLossCost(job, *config, absl::Minutes(1), absl::ZeroDuration()),
      StartsWith("a lost parameter server costs nothing: the task with its "
                 "copy takes over (ps_copies; launch needs --restart)"));
}

TEST(LossCostTest, WorkersCanContinueWithoutALostOne) {
  const absl::StatusOr<ClusterConfig> config =
      ParseTfConfig(kWorkers, "TF_CONFIG");
  ASSERT_OK(config);
  EXPECT_THAT(DescribeLossCost({}, *config, absl::Minutes(1),
                               absl::ZeroDuration(), /*min_workers=*/1),
              StartsWith("a lost worker costs at most one step: the others "
                         "continue, as long as 1 is left; "));
}

TEST(LossCostTest, ASignalsLineSaysHowToResume) {
  proto::TrainingJob job;
  EXPECT_EQ(DescribeResumption(job, "runs/1", /*was_saved=*/true),
            "started again, the job begins from the start; with a "
            "backup_and_restore callback in the job file it would resume");
  proto::JobCallback* const backup = job.add_callbacks();
  ASSERT_TRUE(ParseJobMessage("backup_and_restore {}", backup));
  EXPECT_EQ(DescribeResumption(job, "runs/1", /*was_saved=*/true),
            "to resume from its newest backup, start the job again with "
            "--run_dir=runs/1");
  ASSERT_TRUE(ParseJobMessage(
      "backup_and_restore { save_before_preemption: true }", backup));
  EXPECT_EQ(DescribeResumption(job, "runs/1", /*was_saved=*/true),
            "to resume from there, start the job again with --run_dir=runs/1");
  EXPECT_THAT(DescribeResumption(job, "runs/1", /*was_saved=*/false),
              StartsWith("to resume from its newest backup"));
}

TEST(LossCostTest, ABackupIsNamedWithItsFrequency) {
  EXPECT_THAT(
      Describe("callbacks { backup_and_restore { backup_dir: \"b\" } }", ""),
      HasSubstr("resumes from its backup in b, written after each epoch "
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
