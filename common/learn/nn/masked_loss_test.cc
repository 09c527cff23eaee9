// Losses and metrics of masked values. tests/golden compares whole models with
// Keras.

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The losses of the positions are 1, 4, 9 and 16, 25, 36.
const Tensor kLabels = Tensor::Zeros(DType::kFloat32, {2, 3, 1});
const Tensor kPredictions =
    Tensor::FromValues<float>({2, 3, 1}, {1, 2, 3, 4, 5, 6});

Tensor MaskOf(const std::vector<int>& counts, const Shape& shape = {2, 3}) {
  Tensor mask(DType::kBool, shape);
  for (size_t i = 0; i < counts.size(); ++i) {
    mask.mutable_flat<bool>()[i] = counts[i] != 0;
  }
  return mask;
}

const Tensor kMask = MaskOf({1, 0, 1, 1, 0, 0});

std::vector<float> Flat(const Tensor& tensor) {
  return {tensor.flat<float>().begin(), tensor.flat<float>().end()};
}

// Returns {loss, number of positions that the loss is a mean over or 0,
// gradient of the predictions}.
absl::StatusOr<std::vector<Tensor>> Lose(Reduction reduction,
                                         const Tensor& mask,
                                         const Tensor& weights = Tensor()) {
  const auto function = [&](const std::vector<Value>& inputs) {
    const Loss loss = MeanSquaredError({.reduction = reduction});
    const Loss::Counted counted =
        loss.WithCount(inputs[0], inputs[1],
                       inputs.size() > 3 ? inputs[3] : Value(), inputs[2]);
    const Value count = counted.example_count.builder() != nullptr
                            ? counted.example_count
                            : ZerosLike(Sum(inputs[1]));
    if (!counted.loss.ok()) return std::vector<Value>{counted.loss};
    const std::vector<Gradient> gradients =
        Gradients(Sum(counted.loss), {inputs[1]});
    return std::vector<Value>{counted.loss, count,
                              DenseGradient(gradients[0], inputs[1])};
  };
  std::vector<Tensor> arguments = {kLabels, kPredictions, mask};
  if (weights.IsValid()) arguments.push_back(weights);
  return EvaluateAll(function, arguments, {.unknown_extents = true, .run = {}});
}

TEST(MaskedLossTest, AMeanIsOverUnmaskedPositions) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results,
                       Lose(Reduction::kSumOverBatchSize, kMask));
  EXPECT_FLOAT_EQ(results[0].scalar<float>(), (1 + 9 + 16) / 3.0f);
  EXPECT_EQ(results[1].scalar<float>(), 3);
  EXPECT_THAT(Flat(results[2]), ElementsAre(2 / 3.0f, 0, 2.0f, 8 / 3.0f, 0, 0));
}

TEST(MaskedLossTest, WeightsDoNotChangeTheDenominator) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> by_position,
      Lose(Reduction::kSumOverBatchSize, kMask,
           Tensor::FromValues<float>({2, 3}, {2, 100, 0, 0.5, 100, 100})));
  EXPECT_FLOAT_EQ(by_position[0].scalar<float>(), (2 + 8) / 3.0f);
  EXPECT_EQ(by_position[1].scalar<float>(), 3);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> by_example,
                       Lose(Reduction::kSumOverBatchSize, kMask,
                            Tensor::FromValues<float>({2}, {3, 0.5})));
  EXPECT_FLOAT_EQ(by_example[0].scalar<float>(), (3 * (1 + 9) + 8) / 3.0f);
}

TEST(MaskedLossTest, SumsAndUnreducedLossesAreZeroForPadding) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> sum,
                       Lose(Reduction::kSum, kMask));
  EXPECT_EQ(sum[0].scalar<float>(), 26);
  EXPECT_EQ(sum[1].scalar<float>(), 0);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> none,
                       Lose(Reduction::kNone, kMask));
  EXPECT_THAT(Flat(none[0]), ElementsAre(1, 0, 9, 16, 0, 0));
  EXPECT_EQ(none[1].scalar<float>(), 6);
}

TEST(MaskedLossTest, TheLossIsZeroIfAllPositionsAreMasked) {
  for (const Reduction reduction :
       {Reduction::kSumOverBatchSize, Reduction::kSum}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results,
                         Lose(reduction, MaskOf({0, 0, 0, 0, 0, 0})));
    EXPECT_EQ(results[0].scalar<float>(), 0);
    EXPECT_EQ(results[1].scalar<float>(), 0);
    EXPECT_THAT(Flat(results[2]), ElementsAre(0, 0, 0, 0, 0, 0));
  }
}

TEST(MaskedLossTest, BroadcastsAMaskOfWholeExamples) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results,
                       Lose(Reduction::kSumOverBatchSize, MaskOf({0, 1}, {2})));
  EXPECT_FLOAT_EQ(results[0].scalar<float>(), (16 + 25 + 36) / 3.0f);
}

TEST(MaskedLossTest, RejectsInvalidMasks) {
  EXPECT_THAT(Lose(Reduction::kSum, MaskOf({1, 1, 1, 0, 0, 0}, {2, 3, 1, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("mean_squared_error: expected a mask"),
                             HasSubstr("bool["))));
  EXPECT_THAT(Lose(Reduction::kSum, Tensor::Zeros(DType::kFloat32, {2, 3})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected a mask, bool, of no more axes")));
}

absl::StatusOr<double> Score(const Metric& metric, const Tensor& mask,
                             const Tensor& weights = Tensor()) {
  const auto function = [&](const std::vector<Value>& inputs) {
    return metric.StatisticsOf(inputs[0], inputs[1],
                               inputs.size() > 3 ? inputs[3] : Value(),
                               inputs[2]);
  };
  std::vector<Tensor> arguments = {kLabels, kPredictions, mask};
  if (weights.IsValid()) arguments.push_back(weights);
  const absl::StatusOr<Tensor> sums =
      Evaluate(function, arguments, {.unknown_extents = true, .run = {}});
  if (!sums.ok()) return sums.status();
  const std::vector<float> values = Flat(*sums);
  return metric.ResultOf(std::vector<double>(values.begin(), values.end()));
}

TEST(MaskedMetricTest, ExcludesPadding) {
  EXPECT_THAT(Score(MeanSquaredError(), kMask),
              IsOkAndHolds(testing::DoubleNear(26 / 3.0, 1e-6)));
  EXPECT_THAT(Score(MeanOfPredictions(), kMask),
              IsOkAndHolds(testing::DoubleNear(8 / 3.0, 1e-6)));
  EXPECT_THAT(Score(MeanSquaredError(), MaskOf({0, 0, 0, 0, 0, 0})),
              IsOkAndHolds(0.0));
}

TEST(MaskedMetricTest, AppliesWeightsToUnmaskedPositions) {
  EXPECT_THAT(
      Score(MeanSquaredError(), kMask,
            Tensor::FromValues<float>({2, 3}, {2, 100, 1, 1, 100, 100})),
      IsOkAndHolds(testing::DoubleNear((2 + 9 + 16) / 4.0, 1e-6)));
  EXPECT_THAT(
      Score(MeanSquaredError(), kMask, Tensor::FromValues<float>({2}, {1, 2})),
      IsOkAndHolds(testing::DoubleNear((1 + 9 + 32) / 4.0, 1e-6)));
  // One weight per element, although the mask has one element per position.
  EXPECT_THAT(Score(MeanOfPredictions(), kMask,
                    Tensor::FromValues<float>({2, 3, 1}, {1, 9, 1, 2, 9, 9})),
              IsOkAndHolds(testing::DoubleNear((1 + 3 + 8) / 4.0, 1e-6)));
}

TEST(MaskedMetricTest, IgnoringMasksIncludesPadding) {
  EXPECT_THAT(Score(Metric(MeanSquaredError()).IgnoringMasks(), kMask),
              IsOkAndHolds(testing::DoubleNear(91 / 6.0, 1e-6)));
}

}  // namespace
}  // namespace muster
