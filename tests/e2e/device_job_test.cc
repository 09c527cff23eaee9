// The coordinator's executable runs a job on simulated GPUs. The summary equals
// that on the CPU.

#include <cstdint>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/storage/disk.h"
#include "common/net/process/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

// A model with dropout.
constexpr absl::string_view kDense = R"(
  model { sequential {
    layers { dense { units: 16 activation: RELU } }
    layers { dropout { rate: 0.2 } }
    layers { dense { units: 3 } }
  } }
)";

// Sequences of 3 time steps, for each recurrent cell.
constexpr absl::string_view kRecurrent = R"(
  model { sequential {
    layers { reshape { target_shape: 3 target_shape: 2 } }
    layers { lstm { units: 8 return_sequences: true } }
    layers { gru { units: 7 return_sequences: true recurrent_dropout: 0.1 } }
    layers { gru { units: 7 return_sequences: true reset_after: false } }
    layers { simple_rnn { units: 6 go_backwards: true } }
    layers { dense { units: 3 } }
  } }
)";

// The last batch has 7 rows.
constexpr absl::string_view kTraining = R"(
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
  std::string folder;
  nlohmann::json summary;
  std::string output;  // The coordinator's output.
};

// Trains on a machine with two simulated GPUs. `strategy` names the devices to
// use.
absl::StatusOr<Trained> Train(const std::string& name,
                              const std::string& strategy,
                              absl::string_view model = kDense) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/", name);
  const std::string job = folder + ".job";
  std::ofstream(job) << model << kTraining << strategy;
  ASSIGN_OR_RETURN(
      const auto coordinator,
      ProcessUnderTest::Start({"coordinator/coordinator", "--threads=1",
                               "--gpu_simulated=2", absl::StrCat("--job=", job),
                               absl::StrCat("--run_dir=", folder)}));
  ASSIGN_OR_RETURN(const ProcessEnd end, coordinator->AwaitEnd());
  if (end.ShellCode() != 0) return absl::InternalError(coordinator->output());
  std::ifstream file(folder + "/summary.json");
  return Trained{folder, nlohmann::json::parse(file), coordinator->output()};
}

// Matches the log line of placement.cc.
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

void ExpectSameWeights(const std::string& got_folder,
                       const std::string& wanted_folder) {
  const auto open = [](const std::string& folder) {
    return TensorBundleReader::Open(Disk::Real(), folder + "/final_weights");
  };
  ASSERT_OK_AND_ASSIGN(const auto got, open(got_folder));
  ASSERT_OK_AND_ASSIGN(const auto wanted, open(wanted_folder));
  int compared_count = 0;
  for (const auto& stored : wanted->tensors()) {
    if (stored.dtype != DType::kFloat32) continue;
    SCOPED_TRACE(stored.name);
    ASSERT_OK_AND_ASSIGN(const Tensor want, wanted->Read(stored.name));
    ASSERT_OK_AND_ASSIGN(const Tensor have, got->Read(stored.name));
    ASSERT_EQ(have.type(), want.type());
    for (int64_t i = 0; i < want.element_count(); ++i) {
      ASSERT_NEAR(have.flat<float>()[i], want.flat<float>()[i], 1e-4);
    }
    ++compared_count;
  }
  EXPECT_GE(compared_count, 14);  // 3 for each recurrent layer, 2 for the last
                                  // layer.
}

TEST(DeviceJobTest, RecurrentLayersTrainToTheWeightsOfTheCpu) {
  ASSERT_OK_AND_ASSIGN(
      const Trained cpu,
      Train("rnn_cpu", R"(strategy { one_device { device: "cpu:0" } })",
            kRecurrent));
  EXPECT_GE(cpu.summary["final"]["test_sparse_categorical_accuracy"], 0.7);
  // Without a strategy, gpu:0 is used.
  ASSERT_OK_AND_ASSIGN(const Trained gpu, Train("rnn_gpu", "", kRecurrent));
  EXPECT_THAT(gpu.output, RunsAStepOn("gpu:0"));
  EXPECT_THAT(gpu.output, testing::Not(testing::HasSubstr("has no kernel")));
  ExpectSameSummary(gpu.summary, cpu.summary);
  ExpectSameWeights(gpu.folder, cpu.folder);
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

TEST(DeviceJobTest, StrategiesOfReplicasHaveAllGpusUnlessSomeAreNamed) {
  for (const char* const strategy :
       {"mirrored", "central_storage", "multi_worker_mirrored"}) {
    SCOPED_TRACE(strategy);
    ASSERT_OK_AND_ASSIGN(const Trained all,
                         Train(absl::StrCat("all_", strategy),
                               absl::StrCat("strategy { ", strategy, " {} }")));
    EXPECT_THAT(all.output, RunsAStepOn("gpu:0"));
    EXPECT_THAT(all.output, RunsAStepOn("gpu:1"));
  }
}

}  // namespace
}  // namespace muster
