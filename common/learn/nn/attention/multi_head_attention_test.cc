#include "common/learn/nn/attention/multi_head_attention.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Graph> Trace(const LayerPtr& layer,
                            const std::vector<TensorType>& types,
                            const CallContext& context = kInference) {
  if (layer->path().empty()) layer->SetPath("layer");
  GraphBuilder builder(&BuiltinOps(), "test");
  std::vector<Value> inputs;
  for (const TensorType& type : types) {
    inputs.push_back(builder.Parameter("x", type));
  }
  for (const Value& output : layer->CallAll(inputs, context)) {
    builder.AddResult(output);
  }
  return std::move(builder).Build();
}

const TensorType kQuery = {DType::kFloat32, {Shape::kUnknown, 5, 6}};
const TensorType kSource = {DType::kFloat32, {Shape::kUnknown, 7, 4}};

TEST(MultiHeadAttentionTest, NamesAndShapesWeightsAsKeras) {
  const LayerPtr layer = MultiHeadAttention(2, 3, {.value_dim = 8});
  layer->SetPath("attention");
  ASSERT_OK(Trace(layer, {kQuery, kSource}));
  std::vector<std::string> weights;
  for (const Weight& weight : layer->weights()) {
    weights.push_back(weight.name() + weight.handle().type.shape.ToString());
  }
  EXPECT_THAT(
      weights,
      ElementsAre("attention/query/kernel[6,2,3]", "attention/query/bias[2,3]",
                  "attention/key/kernel[4,2,3]", "attention/key/bias[2,3]",
                  "attention/value/kernel[4,2,8]", "attention/value/bias[2,8]",
                  "attention/attention_output/kernel[2,8,6]",
                  "attention/attention_output/bias[6]"));
}

TEST(MultiHeadAttentionTest, ReturnsAttentionScores) {
  ASSERT_OK_AND_ASSIGN(
      const Graph graph,
      Trace(MultiHeadAttention(
                2, 3, {.output_dim = 9, .return_attention_scores = true}),
            {kQuery, kSource}));
  ASSERT_EQ(graph.results.size(), 2u);
  EXPECT_EQ(graph.TypeOf(graph.results[0]).shape,
            Shape({Shape::kUnknown, 5, 9}));
  EXPECT_EQ(graph.TypeOf(graph.results[1]).shape,
            Shape({Shape::kUnknown, 2, 5, 7}));
}

// Attention of one head to {1, 3} and {5, 7}, which the first position must not
// attend to.
absl::StatusOr<Tensor> AttendMasked(
    const LayerPtr& layer,
    const Tensor& mask = Tensor::FromValues<bool>({1, 2, 2}, {false, false,  //
                                                              true, false})) {
  layer->SetPath("layer");
  InterpretOptions options;
  for (const char* name : {"query", "key", "value"}) {
    options.run.variables["layer/" + std::string(name) + "/kernel"] =
        Tensor::Full(DType::kFloat32, {2, 1, 2}, 0.5);
  }
  options.run.variables["layer/attention_output/kernel"] =
      Tensor::Full(DType::kFloat32, {1, 2, 2}, 0.5);
  return Evaluate(
      [&](const std::vector<Value>& inputs) {
        return (*layer)({inputs[0], inputs[0], inputs[1]}, kInference);
      },
      {Tensor::FromValues<float>({1, 2, 2}, {1, 3, 5, 7}), mask}, options);
}

TEST(MultiHeadAttentionTest, AttendsToAllIfItMayAttendToNone) {
  ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      AttendMasked(MultiHeadAttention(
          1, 2, {.use_bias = false, .takes_attention_mask = true})));
  // The second position attends only to the first value: (1 + 3) / 2.
  EXPECT_THAT(y.flat<float>(), ElementsAre(4, 4, 2, 2));
}

// As a bool mask of what is not 0.
TEST(MultiHeadAttentionTest, MasksMayBeNumbers) {
  const auto layer = [] {
    return MultiHeadAttention(
        1, 2, {.use_bias = false, .takes_attention_mask = true});
  };
  ASSERT_OK_AND_ASSIGN(const Tensor floats,
                       AttendMasked(layer(), Tensor::FromValues<float>(
                                                 {1, 2, 2}, {0, 0, 0.25, 0})));
  EXPECT_THAT(floats.flat<float>(), ElementsAre(4, 4, 2, 2));
  ASSERT_OK_AND_ASSIGN(const Tensor integers,
                       AttendMasked(layer(), Tensor::FromValues<int32_t>(
                                                 {1, 2, 2}, {0, 0, 1, 0})));
  EXPECT_THAT(integers.flat<float>(), ElementsAre(4, 4, 2, 2));
}

TEST(MultiHeadAttentionTest, AttendsToNoneIfItReturnsScores) {
  ASSERT_OK_AND_ASSIGN(const Tensor y, AttendMasked(MultiHeadAttention(
                                           1, 2,
                                           {.use_bias = false,
                                            .takes_attention_mask = true,
                                            .return_attention_scores = true})));
  EXPECT_THAT(y.flat<float>(), ElementsAre(0, 0, 2, 2));
}

TEST(MultiHeadAttentionTest, AppliesDropoutOnlyWhileTraining) {
  const LayerPtr layer = MultiHeadAttention(2, 3, {.dropout = 0.5});
  ASSERT_OK_AND_ASSIGN(const Graph inference, Trace(layer, {kQuery, kSource}));
  EXPECT_THAT(inference.ToString(), testing::Not(HasSubstr("StepSeed")));
  ASSERT_OK_AND_ASSIGN(const Graph training,
                       Trace(layer, {kQuery, kSource}, kTraining));
  EXPECT_THAT(training.ToString(), HasSubstr("StepSeed"));
}

TEST(MultiHeadAttentionTest, ReportsInvalidInputs) {
  const auto refused = [](const std::string& why) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why));
  };
  EXPECT_THAT(Trace(MultiHeadAttention(0, 3), {kQuery, kSource}),
              refused("at least 1"));
  EXPECT_THAT(Trace(MultiHeadAttention(2, 3), {kQuery}),
              refused("query, value and optionally key"));
  EXPECT_THAT(Trace(MultiHeadAttention(2, 3, {.takes_attention_mask = true}),
                    {{DType::kBool, {Shape::kUnknown, 5, 6}}}),
              refused("query, value and optionally key"));
  EXPECT_THAT(
      Trace(MultiHeadAttention(2, 3, {.use_causal_mask = true}),
            {kQuery, {DType::kFloat32, {Shape::kUnknown, Shape::kUnknown, 4}}}),
      refused("known time"));
  EXPECT_THAT(Trace(MultiHeadAttention(2, 3, {.takes_attention_mask = true}),
                    {kQuery, kSource, {DType::kBool, {Shape::kUnknown, 6}}}),
              refused("expected a mask [batch, time, source time]"));
}

}  // namespace
}  // namespace muster
