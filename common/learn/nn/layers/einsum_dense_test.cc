#include "common/learn/nn/layers/einsum_dense.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// tests/golden compares outputs and gradients with Keras.
namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kAny = Shape::kUnknown;

// The shapes of the output and of the weights.
absl::StatusOr<std::vector<Shape>> ShapesOf(const LayerPtr& layer,
                                            const Shape& input) {
  layer->SetPath("layer");
  GraphBuilder builder(&BuiltinOps(), "test");
  builder.AddResult((*layer)(builder.Parameter("x", {DType::kFloat32, input})));
  ASSIGN_OR_RETURN(const Graph graph, std::move(builder).Build());
  std::vector<Shape> shapes = {graph.TypeOf(graph.results[0]).shape};
  for (const Weight& weight : layer->weights()) {
    shapes.push_back(weight.handle().type.shape);
  }
  return shapes;
}

TEST(EinsumDenseTest, DerivesTheShapes) {
  using Shapes = std::vector<Shape>;
  EXPECT_THAT(
      ShapesOf(EinsumDense("abc,cde->abde", {kAny, 3, 2}, {.bias_axes = "d"}),
               {kAny, 4, 5}),
      IsOkAndHolds(Shapes{{kAny, 4, 3, 2}, {5, 3, 2}, {3, 1}}));
  EXPECT_THAT(ShapesOf(EinsumDense("...x,xy->...y", {6}, {.bias_axes = "y"}),
                       {kAny, 2, 3, 4}),
              IsOkAndHolds(Shapes{{kAny, 2, 3, 6}, {4, 6}, {6}}));
  EXPECT_THAT(ShapesOf(EinsumDense("...x,xy->...y", {6}), {kAny, 4}),
              IsOkAndHolds(Shapes{{kAny, 6}, {4, 6}}));
  EXPECT_THAT(ShapesOf(EinsumDense("ab...,bc->ac...", {6}, {.bias_axes = "c"}),
                       {kAny, 4, 3, 2}),
              IsOkAndHolds(Shapes{{kAny, 6, 3, 2}, {4, 6}, {6, 1, 1}}));
}

TEST(EinsumDenseTest, RefusesWhatDoesNotFit) {
  struct Case {
    std::string equation;
    std::vector<int64_t> output_shape;
    std::string bias_axes;
    std::string message;
  };
  for (const Case& one : std::vector<Case>{
           {"abc,cd", {4}, "", "expected an equation like"},
           {"abc,cd,de->abe", {4}, "", "expected an equation like"},
           {"abb,bc->ac", {4}, "", "expected an equation like"},
           {"abc,cx->abd", {3, 4}, "", "expected an equation like"},
           {"...c,cd->d...", {4}, "", "expected an equation like"},
           {"ab,bc->ac", {4}, "", "an input of rank 2"},
           {"abde...,ec->abdc...", {4}, "", "an input of rank 4"},
           {"abc,cd->abd", {4}, "", "output_shape must have 2 extents"},
           {"abc,cd->abd", {5, 4}, "", "axis b is 3 in the input and 5"},
           {"abc,cd->abd", {kAny, kAny}, "", "axis d of the kernel"},
           {"abc,cd->abd", {kAny, 4}, "x", "bias_axes must be axes"},
           {"abc,cd->abd", {kAny, 4}, "a", "of known extents"},
       }) {
    EXPECT_THAT(
        ShapesOf(EinsumDense(one.equation, one.output_shape,
                             {.bias_axes = one.bias_axes}),
                 {kAny, 3, 2}),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(one.message)))
        << one.equation;
  }
}

}  // namespace
}  // namespace muster
