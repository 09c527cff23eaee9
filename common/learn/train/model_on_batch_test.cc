// Tests the arguments of TrainOnBatch(). Other tests show that it trains like
// Fit().

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/class_weights.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int64_t kExamples = 8;

Element Batch() {
  Tensor x(DType::kFloat32, {kExamples, 3});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] =
        static_cast<float>(FoldIn(1, i) % 2001) / 1000 - 1;
  }
  Tensor y(DType::kInt64, {kExamples});
  for (int64_t i = 0; i < kExamples; ++i) y.mutable_flat<int64_t>()[i] = i % 3;
  return {x, y};
}

// Returns the weights of the examples for class weights of 0.2 and 3 for
// classes 0 and 2.
Tensor WeightsOfExamples() {
  Tensor weights(DType::kFloat32, {kExamples});
  for (int64_t i = 0; i < kExamples; ++i) {
    weights.mutable_flat<float>()[i] = i % 3 == 0 ? 0.2f : i % 3 == 1 ? 1 : 3;
  }
  return weights;
}

CompileOptions Options() {
  return {.optimizer = Sgd({.learning_rate = 0.5}),
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .seed = 3};
}

std::vector<std::unique_ptr<Strategy>> Strategies() {
  std::vector<std::unique_ptr<Strategy>> strategies;
  strategies.push_back(DefaultStrategy::Create({.thread_count = 1}).value());
  strategies.push_back(MirroredStrategy::Create(
                           {.devices = {"cpu:0", "cpu:1"}, .thread_count = 1})
                           .value());
  return strategies;
}

std::vector<float> KernelOf(const Model& model) {
  const auto weights = model.GetWeights();
  EXPECT_OK(weights.status());
  const auto values = weights->front().flat<float>();
  return {values.begin(), values.end()};
}

TEST(ModelOnBatchTest, ClassWeightsAreThoseOfTheCall) {
  const ClassWeights class_weight = {{0, 0.2}, {2, 3.0}};
  Element weighted = Batch();
  weighted.push_back(WeightsOfExamples());
  for (const auto& strategy : Strategies()) {
    Model by_hand = Sequential({Dense(3)});
    Model model = Sequential({Dense(3)});
    const auto alone = DefaultStrategy::Create({.thread_count = 1}).value();
    ASSERT_OK(by_hand.Compile(*alone, Options()));
    ASSERT_OK(model.Compile(*strategy, Options()));
    // With, without and again with class weights: no compiled step is used with
    // the wrong weights.
    for (const bool has_weights : {true, false, true}) {
      ASSERT_OK_AND_ASSIGN(
          const Logs wanted,
          by_hand.TrainOnBatch(has_weights ? weighted : Batch()));
      ASSERT_OK_AND_ASSIGN(
          const Logs got,
          model.TrainOnBatch(Batch(),
                             has_weights ? class_weight : ClassWeights()));
      EXPECT_NEAR(got.at("loss"), wanted.at("loss"), 1e-5);
      EXPECT_THAT(KernelOf(model),
                  Pointwise(FloatNear(1e-5), KernelOf(by_hand)));
    }
    // TestOnBatch() does not use class weights.
    ASSERT_OK_AND_ASSIGN(const Logs wanted, by_hand.TestOnBatch(Batch()));
    ASSERT_OK_AND_ASSIGN(const Logs got, model.TestOnBatch(Batch()));
    EXPECT_NEAR(got.at("loss"), wanted.at("loss"), 1e-5);
  }
}

TEST(ModelOnBatchTest, RefusesClassWeightsThatMakeNoSense) {
  Model model = Sequential({Dense(3)});
  ASSERT_OK(model.Compile(Options()));
  EXPECT_THAT(model.TrainOnBatch(Batch(), {{-1, 2.0}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("class_weight: class -1")));

  const LayerOutput x = Input({3});
  Model two(x, {Dense(3)(x), Dense(3)(x)});
  CompileOptions options = Options();
  options.losses = {options.loss, options.loss};
  options.loss = {};
  ASSERT_OK(two.Compile(options));
  const Element batch = {Batch()[0], Batch()[1], Batch()[1]};
  EXPECT_THAT(two.TrainOnBatch(batch, {{0, 2.0}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("class_weight is for models with one")));
  // The error has no effect on later calls.
  EXPECT_OK(two.TrainOnBatch(batch).status());
}

}  // namespace
}  // namespace muster
