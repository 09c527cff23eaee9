#include "common/learn/nn/applications/image_classifier.h"

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
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/applications/efficientnet.h"
#include "common/learn/nn/applications/mobilenet.h"
#include "common/learn/nn/applications/resnet50.h"
#include "common/learn/nn/applications/vgg16.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::applications {
namespace {

using ::testing::HasSubstr;

// Keras' counts: model.count_params(), the trainable part of it, and without
// the top.
struct Expected {
  LayerPtrTo<FunctionalLayer> (*make)(const ImageClassifierOptions& options);
  std::string name;
  int64_t parameter_count;
  int64_t trainable_count;
  int64_t count_without_top;
  size_t weight_count;
  int64_t channels;
};
LayerPtrTo<FunctionalLayer> FullWidthMobileNet(
    const ImageClassifierOptions& options) {
  return MobileNet({.input_shape = options.input_shape,
                    .include_top = options.include_top,
                    .pooling = options.pooling,
                    .classes = options.classes,
                    .classifier_activation = options.classifier_activation,
                    .name = options.name});
}

const Expected kExpected[] = {
    {ResNet50, "resnet50", 25'636'712, 25'583'592, 23'587'712, 320, 2048},
    {VGG16, "vgg16", 138'357'544, 138'357'544, 14'714'688, 32, 512},
    // Without the count of Keras' normalization.
    {EfficientNetB0, "efficientnetb0", 5'330'570, 5'288'548, 4'049'570, 313,
     1280},
    {FullWidthMobileNet, "mobilenet_1.00_224", 4'253'864, 4'231'976, 3'228'864,
     137, 1024},
};

class ImageClassifierTest : public ::testing::TestWithParam<Expected> {};

TEST(MobileNetTest, ReportsInvalidOptions) {
  const std::vector<MobileNetOptions> invalid = {
      {.alpha = 0.03}, {.depth_multiplier = 0}, {.dropout = 1}};
  for (const MobileNetOptions& options : invalid) {
    EXPECT_THAT(MobileNet(options)->status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("alpha of at least 1/32")));
  }
}

// Traces the model, which makes no variables, and returns the output's shape.
absl::StatusOr<Shape> OutputShape(const LayerPtrTo<FunctionalLayer>& model) {
  RETURN_IF_ERROR(model->status());
  model->SetPath("");
  GraphBuilder builder(&BuiltinOps(), "test");
  builder.AddResult(
      (*model)(builder.Parameter("x", model->input_types()[0]), kTraining));
  ASSIGN_OR_RETURN(const Graph graph, std::move(builder).Build());
  return graph.TypeOf(graph.results[0]).shape;
}

std::pair<int64_t, int64_t> ParameterCounts(const Layer& model) {
  int64_t count = 0;
  int64_t trainable_count = 0;
  for (const Weight& weight : model.weights()) {
    const int64_t elements = weight.handle().type.shape.element_count();
    count += elements;
    if (weight.trainable()) trainable_count += elements;
  }
  return {count, trainable_count};
}

TEST_P(ImageClassifierTest, HasAsManyParametersAsKeras) {
  const auto model = GetParam().make({});
  ASSERT_OK_AND_ASSIGN(const Shape prediction, OutputShape(model));
  EXPECT_EQ(prediction, Shape({Shape::kUnknown, 1000}));
  EXPECT_EQ(model->name(), GetParam().name);
  EXPECT_EQ(
      ParameterCounts(*model),
      std::make_pair(GetParam().parameter_count, GetParam().trainable_count));
  EXPECT_EQ(model->weights().size(), GetParam().weight_count);
}

TEST_P(ImageClassifierTest, HasTheRequestedTop) {
  const int64_t channels = GetParam().channels;
  const auto map =
      GetParam().make({.input_shape = {64, 96, 3}, .include_top = false});
  ASSERT_OK_AND_ASSIGN(const Shape shape, OutputShape(map));
  EXPECT_EQ(shape, Shape({Shape::kUnknown, 2, 3, channels}));
  EXPECT_EQ(ParameterCounts(*map).first, GetParam().count_without_top);
  for (const Pooling pooling : {Pooling::kAverage, Pooling::kMax}) {
    ASSERT_OK_AND_ASSIGN(
        const Shape pooled,
        OutputShape(GetParam().make(
            {.input_shape = {Shape::kUnknown, Shape::kUnknown, 3},
             .include_top = false,
             .pooling = pooling})));
    EXPECT_EQ(pooled, Shape({Shape::kUnknown, channels}));
  }
}

TEST_P(ImageClassifierTest, ReportsInvalidOptions) {
  EXPECT_THAT(GetParam().make({.input_shape = {31, 64, 3}})->status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input_shape is [31,64,3]")));
  EXPECT_THAT(
      GetParam().make({.input_shape = {Shape::kUnknown, 64, 3}})->status(),
      StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(GetParam().make({.classes = 0})->status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("at least one class, got 0")));
}

INSTANTIATE_TEST_SUITE_P(Keras, ImageClassifierTest,
                         ::testing::ValuesIn(kExpected), [](const auto& test) {
                           return test.param.name.substr(0, 5);
                         });

}  // namespace
}  // namespace muster::applications
