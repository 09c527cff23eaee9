// A job on simulated GPUs, run by the coordinator's executable, gives the
// summary that it gives on the CPU.

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_matchers.h"
#include "common/net/process/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

// With dropout, and a last batch of 7 rows.
constexpr absl::string_view kJob = R"(
  model { sequential {
    layers { dense { units: 16 activation: RELU } }
    layers { dropout { rate: 0.2 } }
    layers { dense { units: 3 } }
  } }
  train { synthetic { example_count: 135 feature_count: 6 class_count: 3
                      seed: 4 } }
  test { synthetic { example_count: 41 feature_count: 6 class_count: 3
                     seed: 4 } }
  batch_size: 32
  epochs: 6
  optimizer { adam { learning_rate: 0.02 } }
  loss { sparse_categorical_crossentropy { from_logits: true } }
  metrics { sparse_categorical_accuracy {} }
  seed: 11
)";

struct Trained {
  nlohmann::json summary;
  std::string output;  // Of the coordinator.
};

// Trains where there are two simulated GPUs, of which `strategy` uses what it
// names.
absl::StatusOr<Trained> Train(const std::string& name,
                              const std::string& strategy) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/", name);
  const std::string job = folder + ".job";
  std::ofstream(job) << kJob << strategy;
  ASSIGN_OR_RETURN(
      const auto coordinator,
      ProcessUnderTest::Start({"coordinator/coordinator", "--threads=1",
                               "--gpu_simulated=2", absl::StrCat("--job=", job),
                               absl::StrCat("--run_dir=", folder)}));
  ASSIGN_OR_RETURN(const ProcessEnd end, coordinator->AwaitEnd());
  if (end.ShellCode() != 0) return absl::InternalError(coordinator->output());
  std::ifstream file(folder + "/summary.json");
  return Trained{nlohmann::json::parse(file), coordinator->output()};
}

// The line of placement.cc.
testing::Matcher<const std::string&> RunsAStepOn(absl::string_view device) {
  return testing::ContainsRegex(
      absl::StrCat("graph \"[^\"]+\": [1-9][0-9]* nodes on ", device, ","));
}

void ExpectSameSummary(const nlohmann::json& got,
                       const nlohmann::json& wanted) {
  EXPECT_EQ(got["history"]["epoch"], wanted["history"]["epoch"]);
  for (const char* const name :
       {"loss", "sparse_categorical_accuracy", "test_loss",
        "test_sparse_categorical_accuracy"}) {
    EXPECT_NEAR(got["final"][name], wanted["final"][name], 1e-4) << name;
  }
}

TEST(DeviceJobTest, OneGpuTrainsAsTheCpu) {
  ASSERT_OK_AND_ASSIGN(
      const Trained cpu,
      Train("cpu", R"(strategy { one_device { device: "cpu:0" } })"));
  EXPECT_GE(cpu.summary["final"]["test_sparse_categorical_accuracy"], 0.8);
  EXPECT_THAT(cpu.output, testing::Not(RunsAStepOn("gpu")));
  ASSERT_OK_AND_ASSIGN(
      const Trained gpu,
      Train("gpu", R"(strategy { one_device { device: "gpu:0" } })"));
  EXPECT_THAT(gpu.output, RunsAStepOn("gpu:0"));
  ExpectSameSummary(gpu.summary, cpu.summary);
}

TEST(DeviceJobTest, TwoMirroredGpusTrainAsTwoMirroredCpus) {
  ASSERT_OK_AND_ASSIGN(
      const Trained cpu,
      Train("cpus",
            R"(strategy { mirrored { devices: ["cpu:0", "cpu:1"] } })"));
  ASSERT_OK_AND_ASSIGN(
      const Trained gpu,
      Train("gpus",
            R"(strategy { mirrored { devices: ["gpu:0", "gpu:1"] } })"));
  EXPECT_THAT(gpu.output, RunsAStepOn("gpu:0"));
  EXPECT_THAT(gpu.output, RunsAStepOn("gpu:1"));
  EXPECT_THAT(gpu.output,
              testing::HasSubstr("replicas on gpu:0, gpu:1 combine gradients "
                                 "in the memory of the GPUs"));
  ExpectSameSummary(gpu.summary, cpu.summary);
}

}  // namespace
}  // namespace muster
