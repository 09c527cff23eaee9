// Tests constraints with the strategies of one process, on CPUs and on
// simulated GPUs. tests/golden compares one replica with Keras, and ps/client
// compares parameter servers with one process.

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/constraint.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device_set.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/constraints.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/central_storage_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategies/one_device_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::FloatNear;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int64_t kBatch = 8;
constexpr int64_t kExamples = 3 * kBatch + 3;
constexpr int64_t kWords = 9;

// Most words occur in some batches only.
Dataset Sentences() {
  Tensor ids(DType::kInt64, {kExamples, 2});
  Tensor y(DType::kFloat32, {kExamples, 1});
  for (int64_t i = 0; i < ids.element_count(); ++i) {
    ids.mutable_flat<int64_t>()[i] =
        static_cast<int64_t>((i / (2 * kBatch) + FoldIn(1, i) % 3) % kWords);
  }
  for (int64_t i = 0; i < kExamples; ++i) {
    y.mutable_flat<float>()[i] =
        static_cast<float>(FoldIn(2, i) % 2001) / 1000 - 1;
  }
  return Dataset::FromTensorSlices({ids, y}).Batch(kBatch);
}

struct Constraints {
  Constraint embeddings;
  Constraint kernel;
  Constraint bias;
};

using Weights = std::vector<std::vector<float>>;

absl::StatusOr<Weights> Train(Strategy& strategy,
                              const Constraints& constraints,
                              const OptimizerOptions& stages = {}) {
  Model model = Sequential(
      {Embedding(kWords, 2, {.embeddings_constraint = constraints.embeddings}),
       Flatten(),
       Dense(3, {.kernel_constraint = constraints.kernel,
                 .bias_constraint = constraints.bias}),
       Dense(1)});
  RETURN_IF_ERROR(model.Compile(
      strategy,
      {.optimizer = Sgd({.learning_rate = 0.5, .momentum = 0.9}, stages),
       .loss = "mse",
       .seed = 3}));
  RETURN_IF_ERROR(
      model.Fit(Sentences(), {.epochs = 2, .verbose = Verbosity::kSilent})
          .status());
  ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
  Weights values;
  for (const Tensor& weight : weights) {
    values.emplace_back(weight.flat<float>().begin(),
                        weight.flat<float>().end());
  }
  return values;
}

// Runs before the first strategy uses a device.
class SimulatedGpus : public ::testing::Environment {
 public:
  void SetUp() override {
    ASSERT_OK(DeviceSet::OfProcess().UseSimulatedDevices(2));
  }
};
const auto* const kSimulatedGpus =
    ::testing::AddGlobalTestEnvironment(new SimulatedGpus);

std::unique_ptr<Strategy> Alone(const std::string& device = "cpu:0") {
  return OneDeviceStrategy::Create({.device = device, .thread_count = 1})
      .value();
}

struct Case {
  std::string name;
  std::function<std::unique_ptr<Strategy>()> make;
};

class ConstrainedTrainingTest : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Strategies, ConstrainedTrainingTest,
    ::testing::Values(Case{"TwoReplicas",
                           [] {
                             return MirroredStrategy::Create(
                                        {.devices = {"cpu:0", "cpu:1"},
                                         .thread_count = 1})
                                 .value();
                           }},
                      Case{"OneGpu", [] { return Alone("gpu:0"); }},
                      Case{"TwoGpus",
                           [] {
                             return MirroredStrategy::Create(
                                        {.devices = {"gpu:0", "gpu:1"},
                                         .thread_count = 1})
                                 .value();
                           }},
                      Case{"CentralStorage",
                           [] {
                             return CentralStorageStrategy::Create(
                                        {.compute_devices = {"cpu:0", "cpu:1"},
                                         .thread_count = 1})
                                 .value();
                           }}),
    [](const auto& info) { return info.param.name; });

TEST_P(ConstrainedTrainingTest, ReplicasTrainAsOne) {
  const Constraints constraints = {MaxNorm({.max_value = 0.1, .axis = {1}}),
                                   UnitNorm(), NonNeg()};
  ASSERT_OK_AND_ASSIGN(const Weights free, Train(*Alone(), {}));
  for (const OptimizerOptions& stages : std::vector<OptimizerOptions>{
           {}, {.global_clipnorm = 0.2, .gradient_accumulation_steps = 2}}) {
    ASSERT_OK_AND_ASSIGN(const Weights wanted,
                         Train(*Alone(), constraints, stages));
    for (size_t i = 0; i < 3; ++i) EXPECT_NE(wanted[i], free[i]);
    const auto strategy = GetParam().make();
    ASSERT_OK_AND_ASSIGN(const Weights got,
                         Train(*strategy, constraints, stages));
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_THAT(got[i], Pointwise(FloatNear(2e-5), wanted[i]));
    }
  }
}

// This includes embeddings of words that occur in no batch.
TEST(ConstrainedTraining, WeightsFulfillTheirConstraints) {
  ASSERT_OK_AND_ASSIGN(
      const Weights weights,
      Train(*Alone(),
            {UnitNorm({.axis = {-1}}),
             MinMaxNorm({.min_value = 0.25, .max_value = 0.5}), NonNeg()}));
  for (int64_t row = 0; row < kWords; ++row) {
    EXPECT_NEAR(std::hypot(weights[0][2 * row], weights[0][2 * row + 1]), 1,
                1e-5);
  }
  for (int unit = 0; unit < 3; ++unit) {
    double squares = 0;
    for (int input = 0; input < 4; ++input) {
      const double w = weights[1][3 * input + unit];
      squares += w * w;
    }
    EXPECT_GE(std::sqrt(squares), 0.25 - 1e-5);
    EXPECT_LE(std::sqrt(squares), 0.5 + 1e-5);
  }
  EXPECT_THAT(weights[2], Each(Ge(0.0f)));
}

TEST(ConstrainedTraining, AxisThatTheWeightLacksIsNamed) {
  EXPECT_THAT(Train(*Alone(), {.bias = MaxNorm({.axis = {1}})}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("dense/bias\": constraint max_norm: axis 1 "
                                 "does not exist; the shape is [3]")));
}

}  // namespace
}  // namespace muster
