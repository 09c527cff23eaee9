#include <optional>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/loss_options.h"
#include "common/learn/nn/losses.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

const Tensor kLosses = Tensor::FromValues<float>({3}, {1, 2, 6});

absl::StatusOr<float> Average(const Tensor& losses,
                              std::optional<int64_t> global_batch_size) {
  const auto average = [&](const std::vector<Value>& inputs) {
    return ComputeAverageLoss(inputs[0],
                              {.global_batch_size = global_batch_size});
  };
  const auto value =
      Evaluate(average, {losses}, {.unknown_extents = true, .run = {}});
  if (!value.ok()) return value.status();
  return value->scalar<float>();
}

TEST(AverageLossTest, DividesByTheGlobalBatch) {
  EXPECT_THAT(Average(kLosses, 18), IsOkAndHolds(0.5f));
  EXPECT_THAT(Average(kLosses, std::nullopt), IsOkAndHolds(3.0f));
  // Every number of an example counts, the example itself once.
  EXPECT_THAT(
      Average(Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4}), std::nullopt),
      IsOkAndHolds(5.0f));
}

TEST(AverageLossTest, NoExamplesLoseNothing) {
  const Tensor none = Tensor::Zeros(DType::kFloat32, {0});
  EXPECT_THAT(Average(none, std::nullopt), IsOkAndHolds(0.0f));
  EXPECT_THAT(Average(none, 8), IsOkAndHolds(0.0f));
}

TEST(AverageLossTest, WeightsExamples) {
  const auto average = [](const std::vector<Value>& inputs) {
    return ComputeAverageLoss(
        inputs[0], {.global_batch_size = 2, .sample_weight = inputs[1]});
  };
  ASSERT_OK_AND_ASSIGN(const Tensor value,
                       Evaluate(average, {kLosses, Tensor::FromValues<float>(
                                                       {3}, {1, 0, 0.5})}));
  EXPECT_EQ(value.scalar<float>(), 2);
}

TEST(AverageLossTest, TakesWhatALossWithoutReductionGives) {
  const auto average = [](const std::vector<Value>& inputs) {
    const Loss loss = BinaryCrossentropy(
        {.from_logits = true, .reduction = Reduction::kNone});
    return ComputeAverageLoss(loss(inputs[0], inputs[1]),
                              {.global_batch_size = 4});
  };
  ASSERT_OK_AND_ASSIGN(
      const Tensor value,
      Evaluate(average, {Tensor::FromValues<float>({2, 1}, {0, 1}),
                         Tensor::FromValues<float>({2, 1}, {0, 0})}));
  EXPECT_NEAR(value.scalar<float>(), 2 * 0.6931472 / 4, 1e-6);
}

TEST(AverageLossTest, WhatIsNoLossOfExamplesIsRefused) {
  EXPECT_THAT(Average(Tensor::Scalar(1.0f), 4),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Reduction::kNone")));
  EXPECT_THAT(
      Average(Tensor::FromValues<int32_t>({1}, {1}), 4),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("int32[")));
  EXPECT_THAT(Average(kLosses, 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("global_batch_size is 0")));
}

TEST(AverageLossTest, OneReplicaAddsItsRegularizationOnce) {
  const auto scaled = [](const std::vector<Value>& inputs) {
    return ScaleRegularizationLoss(inputs[0]);
  };
  ASSERT_OK_AND_ASSIGN(const Tensor value, Evaluate(scaled, {kLosses}));
  EXPECT_EQ(value.scalar<float>(), 9);
}

}  // namespace
}  // namespace muster
