#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/convolution.h"
#include "common/learn/nn/layers/convolution_transpose.h"
#include "common/learn/nn/layers/depthwise_convolution.h"
#include "common/learn/nn/layers/margins.h"
#include "common/learn/nn/layers/merge.h"
#include "common/learn/nn/layers/pooling.h"
#include "common/learn/nn/layers/relu.h"
#include "common/learn/nn/layers/reshape.h"
#include "common/learn/nn/layers/up_sampling.h"
#include "common/learn/nn/weight.h"
#include "common/learn/nn/window.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// tests/golden compares the outputs of the layers with Keras.
namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kAny = Shape::kUnknown;

absl::StatusOr<Graph> Trace(const LayerPtr& layer,
                            const std::vector<TensorType>& inputs,
                            const CallContext& context = kInference) {
  layer->SetPath("layer");
  GraphBuilder builder(&BuiltinOps(), "test");
  std::vector<Value> values;
  for (const TensorType& type : inputs) {
    values.push_back(builder.Parameter("x", type));
  }
  builder.AddResult((*layer)(values, context));
  return std::move(builder).Build();
}

Shape ShapeOf(const LayerPtr& layer, const std::vector<Shape>& inputs,
              DType dtype = DType::kFloat32) {
  std::vector<TensorType> types;
  for (const Shape& shape : inputs) types.push_back({dtype, shape});
  const absl::StatusOr<Graph> graph = Trace(layer, types);
  EXPECT_OK(graph);
  return graph.ok() ? graph->TypeOf(graph->results[0]).shape : Shape();
}

void ExpectRefused(const LayerPtr& layer, const std::vector<Shape>& inputs,
                   const std::string& text) {
  std::vector<TensorType> types;
  for (const Shape& shape : inputs) types.push_back({DType::kFloat32, shape});
  EXPECT_THAT(Trace(layer, types),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
}

TEST(ConvolutionTest, HasTheOutputShapesOfKeras) {
  EXPECT_EQ(ShapeOf(Conv2D(8, 3), {{kAny, 32, 31, 3}}),
            Shape({kAny, 30, 29, 8}));
  EXPECT_EQ(
      ShapeOf(Conv2D(8, {3, 1}, {.strides = 2, .padding = Padding::kSame}),
              {{kAny, 32, 31, 3}}),
      Shape({kAny, 16, 16, 8}));
  EXPECT_EQ(ShapeOf(Conv2D(8, 3), {{kAny, kAny, kAny, 3}}),
            Shape({kAny, kAny, kAny, 8}));
  EXPECT_EQ(ShapeOf(Conv2D(8, 3), {{2, 5, 5, 3}}, DType::kUint8),
            Shape({2, 3, 3, 8}));
  EXPECT_EQ(ShapeOf(Conv1D(4, 3, {.strides = 2}), {{kAny, 9, 2}}),
            Shape({kAny, 4, 4}));
  EXPECT_EQ(
      ShapeOf(DepthwiseConv2D(3, {.depth_multiplier = 2}), {{kAny, 5, 5, 3}}),
      Shape({kAny, 3, 3, 6}));
  EXPECT_EQ(ShapeOf(SeparableConv2D(7, 3), {{kAny, 5, 5, 3}}),
            Shape({kAny, 3, 3, 7}));
}

TEST(ConvolutionTest, ReportsInvalidOptionsAndInputs) {
  ExpectRefused(Conv2D(8, 3), {{kAny, 32, 3}},
                "Conv2D layer: expected an input [batch, height, width, "
                "channels]");
  ExpectRefused(Conv2D(8, 3), {{kAny, 32, 32, kAny}}, "must be known");
  ExpectRefused(Conv2D(8, 0), {{kAny, 8, 8, 3}}, "of at least 1");
  ExpectRefused(Conv2D(-8, 3), {{kAny, 8, 8, 3}}, "of at least 1");
  ExpectRefused(Conv2D(8, 3, {.strides = 0}), {{kAny, 8, 8, 3}},
                "of at least 1");
  ExpectRefused(Conv2D(8, 3, {.groups = 2}), {{kAny, 8, 8, 3}},
                "groups that divide filters and channels");
  ExpectRefused(Conv2D(9, 3, {.groups = 2}), {{kAny, 8, 8, 4}},
                "groups that divide filters and channels");
  ExpectRefused(Conv2D(8, 3, {.groups = 0}), {{kAny, 8, 8, 4}}, "groups");
  ExpectRefused(Conv1D(8, 3), {{kAny, 8, 8, 4}}, "[batch, steps, channels]");
  ExpectRefused(DepthwiseConv2D(3, {.depth_multiplier = 0}), {{kAny, 8, 8, 4}},
                "of at least 1");
  ExpectRefused(SeparableConv2D(0, 3), {{kAny, 8, 8, 4}}, "of at least 1");
}

TEST(PoolingTest, HasTheOutputShapesOfKeras) {
  EXPECT_EQ(ShapeOf(MaxPooling2D(), {{kAny, 5, 4, 3}}), Shape({kAny, 2, 2, 3}));
  EXPECT_EQ(
      ShapeOf(AveragePooling2D(3, {.strides = 1, .padding = Padding::kSame}),
              {{kAny, 5, 4, 3}}),
      Shape({kAny, 5, 4, 3}));
  EXPECT_EQ(ShapeOf(GlobalAveragePooling2D(), {{kAny, kAny, kAny, 3}}),
            Shape({kAny, 3}));
  EXPECT_EQ(ShapeOf(GlobalMaxPooling2D({.keepdims = true}), {{kAny, 5, 4, 3}}),
            Shape({kAny, 1, 1, 3}));
  ExpectRefused(MaxPooling2D(0), {{kAny, 5, 4, 3}}, "pool_size and strides");
  ExpectRefused(GlobalMaxPooling2D(), {{kAny, 5, 3}},
                "GlobalMaxPooling2D layer: expected an input");
}

TEST(MergeTest, ReportsInvalidInputs) {
  ExpectRefused(Add(), {{kAny, 3}}, "Add layer: expected two inputs or more");
  ExpectRefused(Subtract(), {{kAny, 3}, {kAny, 3}, {kAny, 3}},
                "expected two inputs, got 3");
  EXPECT_EQ(ShapeOf(Add(), {{kAny, 3}, {kAny, 3}, {kAny, 1}}),
            Shape({kAny, 3}));
  EXPECT_EQ(Multiply()->kind(), "Multiply");
}

TEST(ReshapeTest, KeepsTheBatchUnknown) {
  EXPECT_EQ(ShapeOf(Reshape({-1, 2}), {{kAny, 3, 4}}), Shape({kAny, 6, 2}));
  EXPECT_EQ(ShapeOf(Permute({3, 1, 2}), {{kAny, 3, 4, 5}}),
            Shape({kAny, 5, 3, 4}));
  ExpectRefused(Reshape({5}), {{kAny, 3, 4}}, "Reshape layer: cannot reshape");
  ExpectRefused(Reshape({-1, 5}), {{kAny, 3, 4}}, "cannot reshape");
  ExpectRefused(Permute({1, 1}), {{kAny, 3, 4}},
                "not a permutation of the axes");
  ExpectRefused(Permute({2, 1}), {{kAny, 3}}, "not a permutation of the axes");
}

TEST(ZeroPaddingTest, PadsEachSide) {
  EXPECT_EQ(ShapeOf(ZeroPadding2D({{0, 1}, {2, 3}}), {{kAny, 4, 4, 1}}),
            Shape({kAny, 5, 9, 1}));
  ExpectRefused(ZeroPadding2D(-1), {{kAny, 4, 4, 1}}, "at least 0");
}

TEST(VolumeTest, HasTheOutputShapesOfKeras) {
  const Shape volume = {kAny, 4, 5, 6, 2};
  EXPECT_EQ(ShapeOf(ZeroPadding3D({{0, 1}, {2, 0}, {1, 1}}), {volume}),
            Shape({kAny, 5, 7, 8, 2}));
  EXPECT_EQ(ShapeOf(ZeroPadding3D(), {{kAny, kAny, 5, 6, 2}}),
            Shape({kAny, kAny, 7, 8, 2}));
  EXPECT_EQ(ShapeOf(Cropping3D({1, 2, 0}), {volume}),
            Shape({kAny, 2, 1, 6, 2}));
  EXPECT_EQ(ShapeOf(UpSampling3D({3, 1, 2}), {volume}),
            Shape({kAny, 12, 5, 12, 2}));
  EXPECT_EQ(
      ShapeOf(Conv3DTranspose(3, {2, 3, 1}, {.strides = {3, 2, 1}}), {volume}),
      Shape({kAny, 12, 11, 6, 3}));
}

TEST(VolumeTest, ReportsInvalidOptionsAndInputs) {
  const Shape volume = {kAny, 4, 5, 6, 2};
  ExpectRefused(ZeroPadding3D(-1), {volume}, "ZeroPadding3D layer: expected");
  ExpectRefused(ZeroPadding3D(), {{kAny, 4, 4, 1}}, "[batch, depth, height,");
  ExpectRefused(Cropping3D(2), {volume}, "greater than the cropping");
  ExpectRefused(UpSampling3D(0), {volume}, "at least 1 repetition");
  ExpectRefused(Conv3DTranspose(0, 1), {volume}, "of at least 1");
  ExpectRefused(Conv3DTranspose(1, 1), {{kAny, kAny, 5, 6, 2}}, "known");
}

TEST(ReLUTest, RejectsNegativeOptions) {
  ExpectRefused(ReLU({.max_value = -1}), {{kAny, 4}}, "of at least 0");
  ExpectRefused(ReLU({.negative_slope = -1}), {{kAny, 4}}, "of at least 0");
}

TEST(BatchNormalizationTest, UpdatesTheStatisticsOnlyWhileTraining) {
  const TensorType type{DType::kFloat32, {kAny, 4}};
  for (const bool synchronized : {false, true}) {
    const LayerPtr layer = BatchNormalization({.synchronized = synchronized});
    ASSERT_OK_AND_ASSIGN(const Graph training, Trace(layer, {type}, kTraining));
    EXPECT_THAT(training.ToString(), HasSubstr("AssignSubVariable"));
    ASSERT_OK_AND_ASSIGN(const Graph inference, Trace(layer, {type}));
    EXPECT_THAT(inference.ToString(), Not(HasSubstr("AssignSubVariable")));
    layer->set_trainable(false);
    ASSERT_OK_AND_ASSIGN(const Graph frozen, Trace(layer, {type}, kTraining));
    EXPECT_THAT(frozen.ToString(), Not(HasSubstr("AssignSubVariable")));
    EXPECT_FALSE(layer->weights().front().trainable());
  }
  ExpectRefused(BatchNormalization(), {Shape({5})}, "[batch, ..., channels]");
}

TEST(BatchNormalizationTest, HasTheWeightsOfKeras) {
  const LayerPtr layer = BatchNormalization();
  EXPECT_EQ(ShapeOf(layer, {{kAny, 2, 2, 5}}), Shape({kAny, 2, 2, 5}));
  std::string names;
  for (const Weight& weight : layer->weights()) {
    names += weight.name() + (weight.trainable() ? " " : "! ");
    EXPECT_EQ(weight.handle().type.shape, Shape({5}));
  }
  EXPECT_EQ(names,
            "layer/gamma layer/beta layer/moving_mean! "
            "layer/moving_variance! ");
}

}  // namespace
}  // namespace muster
