// Tests that the CrossDeviceOps of a MirroredStrategy reduce its gradients.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/cross_device/cross_device_ops.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/custom_step.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<MirroredStrategy> FourReplicas(
    std::shared_ptr<const CrossDeviceOps> ops) {
  return MirroredStrategy::Create(
             {.devices = {"cpu:0", "cpu:1", "cpu:2", "cpu:3"},
              .cross_device_ops = std::move(ops)})
      .value();
}

// Returns the weight of a model after one step. The gradient on each of four
// replicas is one example, so the weight is minus the sum of the examples,
// added in the order of the ops.
float WeightAfterOneStep(std::shared_ptr<const CrossDeviceOps> ops) {
  const auto strategy = FourReplicas(std::move(ops));
  Model model = Sequential(
      {Dense(1, {.use_bias = false, .kernel_initializer = Zeros()})});
  EXPECT_OK(model.Compile(
      *strategy,
      {.optimizer = Sgd({.learning_rate = 1.0}),
       .train_step = [](const StepTrace& step) -> std::vector<StepMetric> {
         const Value y = step.Call(step.element[0]);
         step.Minimize(Sum(y));
         return {{"loss", MeanStatistics(y)}};
       }}));
  // In float32, 1e8 + 1 is 1e8.
  const Tensor x = Tensor::FromValues<float>({4, 1}, {1e8f, 1, -1e8f, 1});
  EXPECT_OK(model.Fit(Dataset::FromTensorSlices({x}).Batch(4),
                      {.verbose = Verbosity::kSilent}));
  return model.GetWeights().value()[0].flat<float>()[0];
}

TEST(CrossDeviceTrainingTest, GradientsAreSummedInTheOrderOfTheOps) {
  EXPECT_EQ(WeightAfterOneStep(nullptr), -1);
  EXPECT_EQ(WeightAfterOneStep(ReductionToOneDevice()), -1);
  EXPECT_EQ(WeightAfterOneStep(NcclAllReduce().value()), -1);
  EXPECT_EQ(WeightAfterOneStep(HierarchicalCopyAllReduce().value()), 0);
  EXPECT_EQ(
      WeightAfterOneStep(HierarchicalCopyAllReduce({.num_packs = 3}).value()),
      0);
}

TEST(CrossDeviceTrainingTest, TrainsLikeOneReplica) {
  Tensor x(DType::kFloat32, {30, 2});
  Tensor y(DType::kFloat32, {30, 1});
  for (int64_t i = 0; i < 30; ++i) {
    x.mutable_flat<float>()[2 * i] = static_cast<float>(i % 7) / 7;
    x.mutable_flat<float>()[2 * i + 1] = static_cast<float>(i % 5) / 5;
    y.mutable_flat<float>()[i] = static_cast<float>(i % 3);
  }
  const auto train = [&](Strategy& strategy) {
    Model model = Sequential({Dense(8), Dense(1)});
    EXPECT_OK(model.Compile(
        strategy, {.optimizer = Sgd(), .loss = MeanSquaredError(), .seed = 3}));
    EXPECT_OK(model.Fit(Dataset::FromTensorSlices({x, y}).Batch(8),
                        {.epochs = 4, .verbose = Verbosity::kSilent}));
    return model.GetWeights().value();
  };
  const auto one = DefaultStrategy::Create().value();
  const auto four = FourReplicas(HierarchicalCopyAllReduce().value());
  const std::vector<Tensor> wanted = train(*one);
  const std::vector<Tensor> got = train(*four);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    for (int64_t k = 0; k < got[i].element_count(); ++k) {
      EXPECT_NEAR(got[i].flat<float>()[k], wanted[i].flat<float>()[k], 1e-5);
    }
  }
}

TEST(CrossDeviceTrainingTest, RefusesDeterministicMode) {
  EXPECT_THAT(
      MirroredStrategy::Create({.devices = {"cpu:0", "cpu:1"},
                                .deterministic_micro_batches = 2,
                                .cross_device_ops = ReductionToOneDevice()}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("ReductionToOneDevice"),
                     HasSubstr("deterministic_micro_batches is 2"))));
}

}  // namespace
}  // namespace muster
