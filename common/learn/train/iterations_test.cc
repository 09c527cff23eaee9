// Tests that Model::iterations() counts steps, whichever weights they train.

#include <cstdint>
#include <memory>

#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr int64_t kSteps = 5;

class IterationsTest : public ::testing::TestWithParam<bool> {
 protected:
  IterationsTest() {
    if (GetParam()) {
      strategy_ =
          MirroredStrategy::Create({.devices = {"cpu:0", "cpu:1"}}).value();
    } else {
      strategy_ = DefaultStrategy::Create().value();
    }
  }

  // Returns kSteps batches of two examples, with inputs of width 3 and
  // `label_count` labels of width 1.
  static Dataset Data(int label_count) {
    Element element = {Tensor::Full(DType::kFloat32, {2 * kSteps, 3}, 1)};
    for (int i = 0; i < label_count; ++i) {
      element.push_back(Tensor::Full(DType::kFloat32, {2 * kSteps, 1}, 2));
    }
    return Dataset::FromTensorSlices(element).Batch(2);
  }

  std::unique_ptr<Strategy> strategy_;
};

TEST_P(IterationsTest, CountStepsThatDoNotReachTheFirstWeight) {
  const LayerOutput x = Input({3});
  Model model({x}, {Dense(1)(x), Dense(1)(x)});
  ASSERT_OK(model.Compile(
      *strategy_,
      {.optimizer = Sgd(), .losses = {Loss(), MeanSquaredError()}}));
  EXPECT_THAT(model.iterations(), IsOkAndHolds(0));
  ASSERT_OK(model.Fit(Data(2), {.verbose = Verbosity::kSilent}));
  EXPECT_THAT(model.iterations(), IsOkAndHolds(kSteps));
}

TEST_P(IterationsTest, StayWhenLayersAreFrozen) {
  const LayerPtr base = Dense(4);
  const LayerPtr head = Dense(1);
  Model model = Sequential({base, head});
  ASSERT_OK(model.Compile(*strategy_,
                          {.optimizer = Sgd(), .loss = MeanSquaredError()}));
  base->set_trainable(false);
  ASSERT_OK(model.Fit(Data(1), {.verbose = Verbosity::kSilent}));
  base->set_trainable(true);
  EXPECT_THAT(model.iterations(), IsOkAndHolds(kSteps));
  base->set_trainable(false);
  head->set_trainable(false);
  EXPECT_THAT(model.iterations(), IsOkAndHolds(kSteps));
}

INSTANTIATE_TEST_SUITE_P(Strategies, IterationsTest, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& info) {
                           return info.param ? "Mirrored" : "Default";
                         });

}  // namespace
}  // namespace muster
