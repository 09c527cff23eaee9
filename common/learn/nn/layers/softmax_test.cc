#include "common/learn/nn/layers/softmax.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// tests/golden compares the outputs without masks with Keras.
namespace muster {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Tensor> SoftmaxOf(const Tensor& x, const Tensor& mask,
                                 const SoftmaxOptions& options = {}) {
  const LayerPtr layer = Softmax(options);
  layer->SetPath("layer");
  return Evaluate(
      [&](const std::vector<Value>& values) {
        Masks masks;
        masks.Set(values[0], values[1]);
        return (*layer)(values[0], {.masks = &masks});
      },
      {x, mask});
}

TEST(SoftmaxTest, GivesMaskedElementsNothing) {
  const Tensor x = Tensor::FromValues<float>({2, 3}, {1, 2, 1, 3, 4, 5});
  ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      SoftmaxOf(x, Tensor::FromValues<bool>({2, 3}, {1, 0, 1, 0, 0, 0})));
  EXPECT_THAT(y.flat<float>(),
              testing::Pointwise(testing::FloatEq(),
                                 std::vector<float>{0.5, 0, 0.5, 0, 0, 0}));
}

TEST(SoftmaxTest, DoesNotOverflow) {
  ASSERT_OK_AND_ASSIGN(
      const Tensor y, SoftmaxOf(Tensor::FromValues<float>({1, 2}, {1000, 1000}),
                                Tensor::FromValues<bool>({1, 2}, {1, 1})));
  EXPECT_FLOAT_EQ(y.flat<float>()[0], 0.5);
}

TEST(SoftmaxTest, RefusesTheBatchAxisAndOtherMasks) {
  const Tensor x = Tensor::FromValues<float>({1, 2}, {1, 2});
  const Tensor mask = Tensor::FromValues<bool>({1, 2}, {1, 1});
  for (const std::vector<int64_t>& axis :
       std::vector<std::vector<int64_t>>{{0}, {-2}, {2}, {1, 0}, {}}) {
    EXPECT_THAT(SoftmaxOf(x, mask, {.axis = axis}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("other than the batch's")));
  }
  EXPECT_THAT(SoftmaxOf(x, Tensor::FromValues<bool>({1}, {1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("its mask bool[1]")));
}

}  // namespace
}  // namespace muster
