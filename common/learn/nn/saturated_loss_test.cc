// Losses of probabilities that round to 0 and 1 have the gradients of their
// logits. tests/golden compares values and gradients with Keras.

#include <vector>

#include "absl/status/statusor.h"
#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/losses.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

const Tensor kLogits =
    Tensor::FromValues<float>({2, 3}, {200, -100, 0, -50, 300, 20});
const Tensor kOneHot = Tensor::FromValues<float>({2, 3}, {0, 1, 0, 0, 0, 1});
const Tensor kClasses = Tensor::FromValues<int32_t>({2}, {1, 2});

using PredictFunction = Value (*)(Value logits);

// Returns {loss, gradient of the logits}.
absl::StatusOr<std::vector<Tensor>> Lose(const Loss& loss, const Tensor& labels,
                                         PredictFunction predict,
                                         const Tensor& mask = Tensor()) {
  const auto function = [&](const std::vector<Value>& inputs) {
    const Value value = loss(inputs[1], predict(inputs[0]), Value(),
                             inputs.size() > 2 ? inputs[2] : Value());
    if (!value.ok()) return std::vector<Value>{value};
    const std::vector<Gradient> gradients = Gradients(value, {inputs[0]});
    return std::vector<Value>{value, DenseGradient(gradients[0], inputs[0])};
  };
  std::vector<Tensor> arguments = {kLogits, labels};
  if (mask.IsValid()) arguments.push_back(mask);
  return EvaluateAll(function, arguments);
}

std::vector<float> Flat(const Tensor& tensor) {
  return {tensor.flat<float>().begin(), tensor.flat<float>().end()};
}

Value Bfloat16Softmax(Value logits) {
  return Softmax(Cast(logits, DType::kBfloat16));
}

Value Bfloat16Sigmoid(Value logits) {
  return Sigmoid(Cast(logits, DType::kBfloat16));
}

TEST(SaturatedLossTest, SoftmaxHasTheGradientOfItsLogits) {
  ASSERT_OK_AND_ASSIGN(const auto sparse, Lose(SparseCategoricalCrossentropy(),
                                               kClasses, Softmax));
  EXPECT_THAT(Flat(sparse[0]), ElementsAre(290));
  EXPECT_THAT(Flat(sparse[1]), ElementsAre(0.5, -0.5, 0, 0, 0.5, -0.5));
  ASSERT_OK_AND_ASSIGN(const auto categorical,
                       Lose(CategoricalCrossentropy(), kOneHot, Softmax));
  EXPECT_THAT(Flat(categorical[0]), ElementsAre(290));
  EXPECT_THAT(Flat(categorical[1]), ElementsAre(0.5, -0.5, 0, 0, 0.5, -0.5));
}

TEST(SaturatedLossTest, MixedPrecisionHasTheGradientOfItsLogits) {
  ASSERT_OK_AND_ASSIGN(const auto softmax, Lose(SparseCategoricalCrossentropy(),
                                                kClasses, Bfloat16Softmax));
  EXPECT_THAT(Flat(softmax[0]), ElementsAre(290));
  EXPECT_THAT(Flat(softmax[1]), ElementsAre(0.5, -0.5, 0, 0, 0.5, -0.5));
  ASSERT_OK_AND_ASSIGN(const auto sigmoid,
                       Lose(BinaryCrossentropy(), kOneHot, Bfloat16Sigmoid));
  EXPECT_THAT(Flat(sigmoid[1]),
              Pointwise(FloatNear(1e-3f), {1.0f / 6, -1.0f / 6, 1.0f / 12, 0.0f,
                                           1.0f / 6, 0.0f}));
}

TEST(SaturatedLossTest, PaddingHasNoLoss) {
  const Tensor mask = Tensor::FromValues<bool>({2}, {false, true});
  ASSERT_OK_AND_ASSIGN(const auto results, Lose(SparseCategoricalCrossentropy(),
                                                kClasses, Softmax, mask));
  EXPECT_THAT(Flat(results[0]), ElementsAre(280));
  EXPECT_THAT(Flat(results[1]), ElementsAre(0, 0, 0, 0, 1, -1));
}

TEST(SaturatedLossTest, AnIgnoredClassHasNoLoss) {
  ASSERT_OK_AND_ASSIGN(const auto results,
                       Lose(SparseCategoricalCrossentropy({.ignore_class = 1}),
                            kClasses, Softmax));
  EXPECT_THAT(Flat(results[0]), ElementsAre(280));
  EXPECT_THAT(Flat(results[1]), ElementsAre(0, 0, 0, 0, 1, -1));
}

TEST(SaturatedLossTest, ALossFromLogitsDoesNotApplySoftmaxTwice) {
  ASSERT_OK_AND_ASSIGN(
      const auto results,
      Lose(SparseCategoricalCrossentropy({.from_logits = true}), kClasses,
           Softmax));
  EXPECT_THAT(Flat(results[0]), ElementsAre(290));
}

// The logits are those of another distribution than the loss expects.
TEST(SaturatedLossTest, DoesNotReplaceAnotherActivation) {
  ASSERT_OK_AND_ASSIGN(const auto binary,
                       Lose(BinaryCrossentropy(), kOneHot, Softmax));
  EXPECT_THAT(Flat(binary[1]), Each(0));
  ASSERT_OK_AND_ASSIGN(const auto categorical,
                       Lose(CategoricalCrossentropy(), kOneHot, Sigmoid));
  EXPECT_LT(Flat(categorical[0])[0], 20);
}

TEST(SaturatedLossTest, ClipsModifiedProbabilities) {
  ASSERT_OK_AND_ASSIGN(const auto results, Lose(SparseCategoricalCrossentropy(),
                                                kClasses, [](Value logits) {
                                                  return Softmax(logits) * 0.5;
                                                }));
  EXPECT_THAT(Flat(results[1]), Each(0));
}

}  // namespace
}  // namespace muster
