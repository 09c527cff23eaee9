#include "common/learn/nn/attention/attention.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/attention/multi_head_attention.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// tests/golden compares outputs and gradients without masks with Keras.

// Attends from two positions, for which all scores are equal, to the values
// {1, 3} and {5, 7}. The second position of what is masked is padding.
absl::StatusOr<Tensor> Attend(const LayerPtr& layer, bool is_query_masked,
                              bool is_value_masked) {
  layer->SetPath("layer");
  const Tensor mask = Tensor::FromValues<bool>({1, 2}, {true, false});
  return Evaluate(
      [&](const std::vector<Value>& inputs) {
        Masks masks;
        if (is_query_masked) masks.Set(inputs[0], inputs[2]);
        if (is_value_masked) masks.Set(inputs[1], inputs[2]);
        CallContext context = kInference;
        context.masks = &masks;
        const Value y = (*layer)({inputs[0], inputs[1]}, context);
        EXPECT_EQ(masks.Find(y).ok(), is_query_masked);
        return y;
      },
      {Tensor::Zeros(DType::kFloat32, {1, 2, 2}),
       Tensor::FromValues<float>({1, 2, 2}, {1, 3, 5, 7}), mask});
}

TEST(AttentionTest, AttendsToPositionsThatAreNotMasked) {
  ASSERT_OK_AND_ASSIGN(const Tensor all, Attend(Attention(), false, false));
  EXPECT_THAT(all.flat<float>(), ElementsAre(3, 5, 3, 5));
  ASSERT_OK_AND_ASSIGN(const Tensor first, Attend(Attention(), false, true));
  EXPECT_THAT(first.flat<float>(), ElementsAre(1, 3, 1, 3));
  ASSERT_OK_AND_ASSIGN(const Tensor y, Attend(Attention(), true, false));
  EXPECT_THAT(y.flat<float>(), ElementsAre(3, 5, 0, 0));
}

TEST(AttentionTest, CausalMaskHidesLaterPositions) {
  ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      Attend(Attention({.use_causal_mask = true}), false, false));
  EXPECT_THAT(y.flat<float>(), ElementsAre(1, 3, 3, 5));
  ASSERT_OK_AND_ASSIGN(
      const Tensor masked,
      Attend(Attention({.use_causal_mask = true}), false, true));
  EXPECT_THAT(masked.flat<float>(), ElementsAre(1, 3, 1, 3));
}

TEST(AttentionTest, RefusesInputsThatDoNotFit) {
  GraphBuilder builder(&BuiltinOps(), "test");
  const Value query =
      builder.Parameter("q", {DType::kFloat32, {Shape::kUnknown, 2, 3}});
  const Value value =
      builder.Parameter("v", {DType::kFloat32, {Shape::kUnknown, 4, 2}});
  const LayerPtr layer = AdditiveAttention({.name = "attend"});
  layer->SetPath("attend");
  builder.AddResult((*layer)({query, value}, kInference));
  EXPECT_THAT(std::move(builder).Build(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("AdditiveAttention attend: expected query")));
}

TEST(GroupQueryAttentionTest, RefusesHeadsThatDoNotDivide) {
  GraphBuilder builder(&BuiltinOps(), "test");
  const Value x =
      builder.Parameter("x", {DType::kFloat32, {Shape::kUnknown, 2, 3}});
  const LayerPtr layer = GroupQueryAttention(4, 5, 2);
  layer->SetPath("layer");
  builder.AddResult((*layer)({x, x}, kInference));
  EXPECT_THAT(std::move(builder).Build(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("GroupQueryAttention(5 heads of 4): the "
                                 "number of heads must be a multiple of 2")));
}

}  // namespace
}  // namespace muster
