// Training on a GPU is training on the CPU, within float32 rounding: on
// simulated GPUs, with the code that runs on real ones.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_matchers.h"
#include "common/core/device/device_set.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/mirrored_strategy.h"
#include "common/learn/strategy/one_device_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/history.h"
#include "common/learn/train/model.h"
#include "common/learn/train/progress_bar.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kFeatures = 6;
constexpr int64_t kClasses = 3;
constexpr int64_t kBatch = 16;
// Four full batches and one of five: two plans.
constexpr int64_t kExamples = 4 * kBatch + 5;
constexpr int kEpochs = 3;

// Settings of the process: before any test.
class TwoSimulatedGpus : public ::testing::Environment {
 public:
  void SetUp() override {
    ASSERT_OK(DeviceSet::OfProcess().UseSimulatedDevices(2));
  }
};
const auto* const kGpus =
    ::testing::AddGlobalTestEnvironment(new TwoSimulatedGpus);

Dataset Batches() {
  Tensor x(DType::kFloat32, {kExamples, kFeatures});
  Tensor y(DType::kInt64, {kExamples});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] =
        static_cast<float>(FoldIn(1, i) % 2001) / 1000 - 1;
  }
  for (int64_t i = 0; i < kExamples; ++i) {
    y.mutable_flat<int64_t>()[i] = x.flat<float>()[i * kFeatures] < 0 ? 0 : 2;
  }
  return Dataset::FromTensorSlices({x, y}).Batch(kBatch);
}

struct Trained {
  std::vector<Tensor> weights;
  History history;
};

absl::StatusOr<Trained> Train(Strategy& strategy) {
  Model model = Sequential({Dense(16, {.activation = Activation::kRelu}),
                            Dense(8, {.activation = Activation::kTanh}),
                            Dense(kClasses)});
  RETURN_IF_ERROR(model.Compile(
      strategy, {.optimizer = Adam({.learning_rate = 0.01}),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {SparseCategoricalAccuracy()},
                 .seed = 17}));
  Trained trained;
  ASSIGN_OR_RETURN(
      trained.history,
      model.Fit(Batches(), {.epochs = kEpochs, .verbose = Verbosity::kSilent}));
  ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
  for (const Tensor& weight : weights) {
    trained.weights.push_back(weight.Clone());
  }
  return trained;
}

absl::StatusOr<Trained> TrainOn(const std::string& device) {
  ASSIGN_OR_RETURN(
      const auto strategy,
      OneDeviceStrategy::Create({.device = device, .thread_count = 1}));
  return Train(*strategy);
}

void ExpectNear(const Trained& got, const Trained& wanted) {
  ASSERT_EQ(got.weights.size(), wanted.weights.size());
  for (size_t i = 0; i < got.weights.size(); ++i) {
    ASSERT_EQ(got.weights[i].type(), wanted.weights[i].type());
    for (int64_t j = 0; j < got.weights[i].element_count(); ++j) {
      ASSERT_NEAR(got.weights[i].ElementAsDouble(j),
                  wanted.weights[i].ElementAsDouble(j), 2e-5)
          << "weight " << i << ", element " << j;
    }
  }
}

TEST(DeviceTrainingTest, GpuGivesTheWeightsOfTheCpu) {
  ASSERT_OK_AND_ASSIGN(const Trained on_cpu, TrainOn("cpu:0"));
  ASSERT_OK_AND_ASSIGN(const Trained on_gpu, TrainOn("gpu:0"));
  ExpectNear(on_gpu, on_cpu);
  ASSERT_OK_AND_ASSIGN(const MemoryReport memory,
                       DeviceSet::OfProcess().GetMemoryInfo(0));
  EXPECT_GT(memory.peak_bytes, 0);
}

TEST(DeviceTrainingTest, TwoGpusTrainAsOne) {
  ASSERT_OK_AND_ASSIGN(const Trained one, TrainOn("cpu:0"));
  ASSERT_OK_AND_ASSIGN(const auto strategy,
                       MirroredStrategy::Create(
                           {.devices = {"gpu:0", "gpu:1"}, .thread_count = 1}));
  ASSERT_OK_AND_ASSIGN(const Trained two, Train(*strategy));
  ExpectNear(two, one);
}

TEST(DeviceTrainingTest, GpuThatIsNotThereIsNamed) {
  EXPECT_THAT(
      OneDeviceStrategy::Create({.device = "gpu:2"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"gpu:2\"")));
}

}  // namespace
}  // namespace muster
