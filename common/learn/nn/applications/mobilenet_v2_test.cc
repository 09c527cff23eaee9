#include "common/learn/nn/applications/mobilenet_v2.h"

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
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::applications {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBatch = Shape::kUnknown;

// Builds the model and returns the type of its output.
absl::StatusOr<TensorType> Build(const LayerPtr& model) {
  model->SetPath("");
  GraphBuilder builder(&BuiltinOps(), "test");
  const std::vector<TensorType> types = model->input_types();
  const TensorType type = types.empty()
                              ? TensorType{DType::kFloat32, {kBatch, 32, 32, 3}}
                              : types.front();
  builder.AddResult((*model)(builder.Parameter("x", type), kTraining));
  ASSIGN_OR_RETURN(const Graph graph, std::move(builder).Build());
  return graph.TypeOf(graph.results[0]);
}

int64_t ParameterCount(const LayerPtr& model, bool trainable) {
  int64_t count = 0;
  for (const Weight& weight : model->weights()) {
    if (weight.trainable() != trainable) continue;
    count += weight.handle().type.shape.element_count();
  }
  return count;
}

// Expected: model.count_params() of Keras, and the trainable part of it.
TEST(MobileNetV2Test, HasAsManyParametersAsKeras) {
  const LayerPtr model = MobileNetV2();
  ASSERT_OK_AND_ASSIGN(const TensorType prediction, Build(model));
  EXPECT_EQ(prediction.shape, Shape({kBatch, 1000}));
  EXPECT_EQ(model->name(), "mobilenetv2_1.00_224");
  EXPECT_EQ(ParameterCount(model, true), 3'504'872);
  EXPECT_EQ(ParameterCount(model, false), 34'112);
  EXPECT_EQ(model->layers().size(), 156u);
  EXPECT_EQ(model->weights().size(), 262u);
}

TEST(MobileNetV2Test, RoundsOtherWidthsAsKeras) {
  const std::vector<std::pair<double, int64_t>> expected = {{0.35, 410'208},
                                                            {0.5, 706'224},
                                                            {0.75, 1'382'064},
                                                            {1.3, 3'766'048},
                                                            {1.4, 4'363'712}};
  for (const auto& [alpha, count] : expected) {
    const LayerPtr model = MobileNetV2(
        {.input_shape = {96, 96, 3}, .alpha = alpha, .include_top = false});
    ASSERT_OK(Build(model));
    EXPECT_EQ(ParameterCount(model, true) + ParameterCount(model, false), count)
        << alpha;
  }
}

TEST(MobileNetV2Test, HasTheRequestedTop) {
  ASSERT_OK_AND_ASSIGN(
      const TensorType map,
      Build(MobileNetV2({.input_shape = {96, 65, 1}, .include_top = false})));
  EXPECT_EQ(map.shape, Shape({kBatch, 3, 3, 1280}));
  for (const Pooling pooling : {Pooling::kAverage, Pooling::kMax}) {
    ASSERT_OK_AND_ASSIGN(const TensorType pooled,
                         Build(MobileNetV2({.input_shape = {64, 64, 3},
                                            .include_top = false,
                                            .pooling = pooling})));
    EXPECT_EQ(pooled.shape, Shape({kBatch, 1280}));
  }
  const LayerPtr any =
      MobileNetV2({.input_shape = {Shape::kUnknown, Shape::kUnknown, 3},
                   .include_top = false,
                   .pooling = Pooling::kAverage});
  ASSERT_OK_AND_ASSIGN(const TensorType pooled, Build(any));
  EXPECT_EQ(pooled.shape, Shape({kBatch, 1280}));
  EXPECT_EQ(any->name(), "mobilenetv2_1.00_None");
}

TEST(MobileNetV2Test, ReportsInvalidOptions) {
  EXPECT_THAT(Build(MobileNetV2({.input_shape = {31, 64, 3}})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input_shape is [31,64,3]")));
  EXPECT_THAT(MobileNetV2({.input_shape = {64, 64}})->status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MobileNetV2({.alpha = 0})->status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MobileNetV2({.classes = 0})->status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster::applications
