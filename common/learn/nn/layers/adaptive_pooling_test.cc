#include "common/learn/nn/layers/adaptive_pooling.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/pooling.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// tests/golden compares the layers with Keras, which fails for outputs of one
// element.
namespace muster {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

absl::StatusOr<Tensor> Call(const LayerPtr& layer, const Tensor& x) {
  layer->SetPath("layer");
  return Evaluate(
      [&](const std::vector<Value>& inputs) { return (*layer)(inputs[0]); },
      {x});
}

Tensor Images() {
  Tensor x(DType::kFloat32, {2, 3, 5, 2});
  int next = 0;
  for (float& element : x.mutable_flat<float>()) {
    element = static_cast<float>((next += 37) % 60);
  }
  return x;
}

std::vector<float> Flat(const Tensor& tensor) {
  return {tensor.flat<float>().begin(), tensor.flat<float>().end()};
}

TEST(AdaptivePoolingTest, OneElementIsThatOfAllPositions) {
  ASSERT_OK_AND_ASSIGN(const Tensor mean,
                       Call(AdaptiveAveragePooling2D(1), Images()));
  ASSERT_OK_AND_ASSIGN(
      const Tensor global_mean,
      Call(GlobalAveragePooling2D({.keepdims = true}), Images()));
  EXPECT_EQ(mean.shape(), global_mean.shape());
  EXPECT_THAT(Flat(mean), Pointwise(FloatNear(1e-4), Flat(global_mean)));
  ASSERT_OK_AND_ASSIGN(const Tensor greatest,
                       Call(AdaptiveMaxPooling2D(1), Images()));
  ASSERT_OK_AND_ASSIGN(const Tensor global_greatest,
                       Call(GlobalMaxPooling2D({.keepdims = true}), Images()));
  EXPECT_EQ(Flat(greatest), Flat(global_greatest));
}

TEST(AdaptivePoolingTest, RejectsWhatItCannotPool) {
  EXPECT_THAT(Call(AdaptiveMaxPooling2D(0), Images()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("output_size of at least 1")));
  EXPECT_THAT(Call(AdaptiveMaxPooling1D(2), Images()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected an input")));
}

}  // namespace
}  // namespace muster
