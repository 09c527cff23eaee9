// Runs jobs on the devices that a PJRT plugin for CPUs simulates.

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/job/job.h"
#include "common/learn/train/job/testing/parse_job_message.h"
#include "common/learn/train/run_summary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr char kJob[] = R"(
  model { sequential {
    layers { normalization {} }
    layers { dense { units: 16 activation: RELU } }
    layers { dropout { rate: 0.1 } }
    layers { dense { units: 3 } }
  } }
  train { synthetic { example_count: 300 feature_count: 6 class_count: 3
                      seed: 1 }
          take: 240 shuffle { buffer: 240 } }
  validation { synthetic { example_count: 300 feature_count: 6 class_count: 3
                           seed: 1 }
               skip: 240 take: 30 }
  test { synthetic { example_count: 300 feature_count: 6 class_count: 3
                     seed: 1 }
         skip: 270 }
  batch_size: 16
  epochs: 2
  optimizer { adam { learning_rate: 0.01 } }
  loss { sparse_categorical_crossentropy { from_logits: true } }
  metrics { sparse_categorical_accuracy {} }
  metrics { name: "top_2" sparse_top_k_categorical_accuracy { k: 2 } }
  seed: 5
)";

absl::StatusOr<RunSummary> RunWith(const std::string& strategy) {
  proto::TrainingJob job;
  EXPECT_TRUE(
      ParseJobMessage(absl::StrCat(kJob, "strategy { ", strategy, " }"), &job));
  std::ostringstream output;
  const std::filesystem::path folder = testing::TempDir();
  return RunJob(job, DefaultStrategyFactory(/*thread_count=*/1),
                {.job_file = "test.job",
                 .run_dir = (folder / "run").string(),
                 .muster_version = "1.2.3",
                 .verbose = Verbosity::kLines,
                 .output = &output});
}

TEST(JobTpuTest, DevicesOfAPluginTrainLikeOneCpu) {
  const char* const plugin = std::getenv("MUSTER_PJRT_PLUGIN");
  if (plugin == nullptr || *plugin == '\0') {
    GTEST_SKIP() << "MUSTER_PJRT_PLUGIN does not name a PJRT plugin for CPUs: "
                    "export $(tests/setup_tools.sh)";
  }
  ASSERT_OK_AND_ASSIGN(const RunSummary one, RunWith("default {}"));
  ASSERT_OK_AND_ASSIGN(const RunSummary tpu,
                       RunWith(absl::StrCat("tpu { plugin: '", plugin,
                                            "' cpu_device_count: 2 }")));
  EXPECT_EQ(tpu.strategy, "tpu");
  EXPECT_GT(*tpu.report.replica_state_bytes, 0);
  EXPECT_EQ(tpu.history.step_count, one.history.step_count);
  EXPECT_EQ(tpu.history.example_count, one.history.example_count);
  for (const auto& [name, value] : one.final) {
    EXPECT_NEAR(tpu.final.at(name), value, 1e-4) << name;
  }
}

TEST(JobTpuTest, MissingPluginIsAnError) {
  EXPECT_THAT(
      RunWith("tpu { plugin: '/missing/plugin.so' }"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/missing/plugin.so")));
}

}  // namespace
}  // namespace muster
