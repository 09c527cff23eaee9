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

// Trains on two simulated GPUs, of which `strategy` uses what it names.
// Returns the summary.
absl::StatusOr<nlohmann::json> Train(const std::string &name,
                                     const std::string &strategy) {
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
  return nlohmann::json::parse(file);
}

void ExpectSameSummary(const nlohmann::json &got,
                       const nlohmann::json &wanted) {
  EXPECT_EQ(got["history"]["epoch"], wanted["history"]["epoch"]);
  for (const char *const name :
       {"loss", "sparse_categorical_accuracy", "test_loss",
        "test_sparse_categorical_accuracy"}) {
    EXPECT_NEAR(got["final"][name], wanted["final"][name], 1e-4) << name;
  }
}

TEST(DeviceJobTest, OneGpuTrainsAsTheCpu) {
  ASSERT_OK_AND_ASSIGN(
      const nlohmann::json cpu,
      Train("cpu", R"(strategy { one_device { device: "cpu:0" } })"));
  EXPECT_GE(cpu["final"]["test_sparse_categorical_accuracy"], 0.8);
  ASSERT_OK_AND_ASSIGN(
      const nlohmann::json gpu,
      Train("gpu", R"(strategy { one_device { device: "gpu:0" } })"));
  ExpectSameSummary(gpu, cpu);
}

TEST(DeviceJobTest, TwoMirroredGpusTrainAsTwoMirroredCpus) {
  ASSERT_OK_AND_ASSIGN(
      const nlohmann::json cpu,
      Train("cpus",
            R"(strategy { mirrored { devices: ["cpu:0", "cpu:1"] } })"));
  ASSERT_OK_AND_ASSIGN(
      const nlohmann::json gpu,
      Train("gpus",
            R"(strategy { mirrored { devices: ["gpu:0", "gpu:1"] } })"));
  ExpectSameSummary(gpu, cpu);
}

}  // namespace
}  // namespace muster
