// Crossentropies of classes that are not on the last axis.
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/losses.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// [batch, classes, 2]
const Tensor kLogits = Tensor::FromValues<float>(
    {2, 3, 2}, {0.5f, -1, 2, 0.25f, 1, 3, -0.5f, 0, 1.5f, 1, 0.75f, -2});
const Tensor kClasses = Tensor::FromValues<int32_t>({2, 2}, {2, 0, 1, 1});

absl::StatusOr<Tensor> Lose(const Loss& loss, const Tensor& logits,
                            bool moves_classes) {
  return Evaluate(
      [&](const std::vector<Value>& inputs) {
        return loss(inputs[0], moves_classes ? Transpose(inputs[1], {0, 2, 1})
                                             : inputs[1]);
      },
      {kClasses, logits}, {});
}

TEST(CrossentropyAxisTest, ClassesMayBeOnAnyAxisBehindTheBatch) {
  for (const bool has_ignored : {false, true}) {
    for (const int64_t axis : {1, -2}) {
      SparseCrossentropyOptions options = {.from_logits = true,
                                           .reduction = Reduction::kNone};
      if (has_ignored) options.ignore_class = 0;
      ASSERT_OK_AND_ASSIGN(
          const Tensor expected,
          Lose(SparseCategoricalCrossentropy(options), kLogits, true));
      options.axis = axis;
      ASSERT_OK_AND_ASSIGN(
          const Tensor got,
          Lose(SparseCategoricalCrossentropy(options), kLogits, false));
      EXPECT_TRUE(BitwiseEqual(got, expected));
    }
  }
}

TEST(CrossentropyAxisTest, RefusesTheBatchAndWhatDoesNotExist) {
  for (const int64_t axis : {0, 3, -3}) {
    EXPECT_THAT(Lose(SparseCategoricalCrossentropy({.axis = axis}), kLogits,
                     /*moves_classes=*/false),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("expected an axis behind that of the "
                                   "batch")));
  }
}

// Keras refuses files with the others.
TEST(GeneralizedCrossentropyTest, TakesPowersBetween0And1) {
  EXPECT_OK(
      Lose(CategoricalGeneralizedCrossEntropy({.q = 0.5}), kLogits, true));
  for (const double q : {0.0, 1.0, -1.0}) {
    EXPECT_THAT(
        Lose(CategoricalGeneralizedCrossEntropy({.q = q}), kLogits, true),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("expected a number between 0 and 1")));
  }
}

}  // namespace
}  // namespace muster
