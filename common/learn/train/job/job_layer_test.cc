#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/job/job_fields.h"
#include "common/learn/train/job/job_model.h"
#include "common/learn/train/job/job_schema.h"
#include "common/learn/train/job/testing/parse_job_message.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "proto/job_model.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

proto::JobLayer Parse(const std::string& text) {
  proto::JobLayer layer;
  EXPECT_TRUE(ParseJobMessage(text, &layer)) << text;
  return layer;
}

absl::StatusOr<LayerPtr> Build(const std::string& text) {
  return BuildJobLayer(Parse(text));
}

// The shape of what the layer that the text describes gives for `input`.
absl::StatusOr<Shape> OutputShape(const std::string& text, const Shape& input) {
  ASSIGN_OR_RETURN(const LayerPtr layer, Build(text));
  layer->SetPath("layer");
  GraphBuilder builder(&BuiltinOps(), "test");
  const Value x = builder.Parameter("x", {DType::kFloat32, input});
  const bool is_attention = layer->kind() == "MultiHeadAttention";
  const std::vector<Value> inputs(is_attention ? 2 : 1, x);
  builder.AddResult((*layer)(inputs, kTraining));
  ASSIGN_OR_RETURN(const Graph graph, std::move(builder).Build());
  return graph.TypeOf(graph.results[0]).shape;
}

const Shape kImages = {Shape::kUnknown, 8, 6, 3};
const Shape kTimes = {Shape::kUnknown, 4, 5};

TEST(JobLayerTest, DescribeLayersForImages) {
  for (const char* text : {
           "layer_normalization { axis: [ 1, 2 ] epsilon: 0.01 scale: false }",
           "leaky_relu {}",
           "leaky_relu { negative_slope: 0.1 }",
           "prelu { shared_axes: [ 1, 2 ] alpha_initializer { ones {} } }",
           "rescaling { scale: 0.00392156862745098 offset: -1 }",
           "random_flip { mode: HORIZONTAL }",
           "random_rotation { factor: 0.2 fill_mode: WRAP }",
           "random_rotation { factor: [ -0.1, 0.3 ] interpolation: NEAREST }",
           "random_zoom { height_factor: 0.2 }",
           "random_zoom { height_factor: 0.2 width_factor: [ 0.1, 0.2 ] }",
       }) {
    ASSERT_OK_AND_ASSIGN(const Shape shape, OutputShape(text, kImages));
    EXPECT_EQ(shape, kImages) << text;
  }
  ASSERT_OK_AND_ASSIGN(
      const Shape resized,
      OutputShape("resizing { height: 4 width: 9 crop_to_aspect_ratio: true }",
                  kImages));
  EXPECT_EQ(resized, Shape({Shape::kUnknown, 4, 9, 3}));
}

TEST(JobLayerTest, DescribeLayersForSequences) {
  const std::vector<std::pair<std::string, Shape>> layers = {
      {"simple_rnn { units: 7 activation: RELU }", {Shape::kUnknown, 7}},
      {"lstm { units: 7 return_sequences: true unit_forget_bias: false }",
       {Shape::kUnknown, 4, 7}},
      {"gru { units: 7 reset_after: false dropout: 0.2 "
       "recurrent_initializer { orthogonal { gain: 0.5 } } }",
       {Shape::kUnknown, 7}},
      {"multi_head_attention { num_heads: 2 key_dim: 3 output_dim: 6 "
       "use_causal_mask: true }",
       {Shape::kUnknown, 4, 6}}};
  for (const auto& [text, wanted] : layers) {
    ASSERT_OK_AND_ASSIGN(const Shape shape, OutputShape(text, kTimes));
    EXPECT_EQ(shape, wanted) << text;
  }
}

TEST(JobLayerTest, MistakesNameTheField) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"resizing { height: 4 }", "resizing.width"},
      {"random_rotation {}", "random_rotation.factor"},
      {"random_zoom { height_factor: [ 1, 2, 3 ] }",
       "random_zoom.height_factor"},
      {"lstm {}", "lstm.units"},
      {"multi_head_attention { num_heads: 2 }", "multi_head_attention.key_dim"},
      {"conv1d { filters: 1 kernel_size: [ 2, 2 ] }",
       "conv1d.kernel_size must be one number, got 2 numbers"},
      {"dropout { rate: 1 }",
       "dropout.rate must be at least 0 and less than 1, got 1"},
      {"normalization { mean: 1 }", "normalization.variance must have as many"},
      {"rescaling { offset: 1 }", "rescaling.scale is missing"},
      {"time_distributed {}", "time_distributed.layer must be a layer"},
      {"time_distributed { layer { dense {} } }",
       "time_distributed.layer: dense.units"},
      {"time_distributed { layer { inputs: 'a' flatten {} } }",
       "time_distributed.layer: inputs: a layer inside another one"},
      {"bidirectional { layer { dense { units: 2 } } }",
       "bidirectional.layer must be a SimpleRNN, LSTM or GRU, got Dense"},
      {"bidirectional { layer { gru { units: 2 } } "
       "backward_layer { flatten {} } }",
       "bidirectional.layer has a backward layer that must be recurrent"},
      {"bidirectional { layer { gru { units: 2 } } "
       "backward_layer { gru { units: 2 } } }",
       "must differ in go_backwards"},
      {"bidirectional { layer { gru { units: 2 return_state: true } } "
       "backward_layer { gru { units: 2 go_backwards: true } } }",
       "the same return_sequences, return_state and stateful"},
      {"conv2d_transpose { filters: 1 kernel_size: 2 output_padding: -1 }",
       "conv2d_transpose.output_padding must be at least 0, got -1"},
      {"dot { axes: [ 1, 2, 3 ] }", "dot.axes must be one number"},
      {"call { layer: 'a' }", "call cannot stand here"},
      {"name: 'a'", "says nothing"}};
  for (const auto& [text, field] : mistakes) {
    EXPECT_THAT(Build(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(field)))
        << text;
  }
}

TEST(JobLayerTest, HyperparametersOfRelatedKindsAreUnknownFields) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"lstm { units: 1 reset_after: true }", "reset_after"},
      {"gru { units: 1 unit_forget_bias: true }", "unit_forget_bias"},
      {"simple_rnn { units: 1 recurrent_activation: TANH }",
       "recurrent_activation"}};
  const auto& type =
      *JobSchema().FindMessageTypeByName("muster.proto.JobLayer");
  for (const auto& [text, field] : mistakes) {
    const JobFields fields = CheckJobFields(text, type);
    ASSERT_TRUE(fields.mistake.has_value()) << text;
    EXPECT_THAT(fields.mistake->message,
                HasSubstr(absl::StrCat("has no field named \"", field, "\"")));
  }
}

// Reads a message that has a value for each field, so that a field of another
// type than the hyperparameter cannot pass.
TEST(JobLayerTest, EveryFieldCanBeRead) {
  for (const char* text : {
           "conv1d { filters: 2 kernel_size: 3 strides: 1 padding: SAME "
           "dilation_rate: 1 groups: 1 activation: RELU use_bias: true "
           "kernel_initializer { ones {} } bias_initializer { ones {} } "
           "kernel_regularizer { l2 {} } bias_regularizer { l1 {} } }",
           "normalization { mean: [ 1, 2 ] variance: [ 1, 4 ] invert: true }",
           "relu { max_value: 6 negative_slope: 0.1 threshold: 1 }",
           "dropout { rate: 0.5 seed: 7 }",
           "lstm { units: 2 return_state: true seed: 3 }",
           "multi_head_attention { num_heads: 1 key_dim: 2 value_dim: 3 "
           "output_dim: 4 return_attention_scores: true seed: 1 }",
           "embedding { input_dim: 3 output_dim: 2 mask_zero: true }",
           "zero_padding2d { padding: [ 1, 2 ] }",
           "batch_normalization { momentum: 0.9 synchronized: true "
           "moving_mean_initializer { constant { value: 1 } } }",
       }) {
    EXPECT_OK(Build(text).status()) << text;
  }
}

TEST(JobLayerTest, InitializersAreReadWithTheirSeeds) {
  const auto build = [](const std::string& initializer) {
    return Build(absl::StrCat("dense { units: 2 kernel_initializer { ",
                              initializer, " } }"));
  };
  for (const char* text :
       {"zeros {}", "ones {}", "constant { value: 0.5 }",
        "random_uniform { minval: -1 maxval: 1 seed: 3 }",
        "random_normal { mean: 1 stddev: 2 seed: 3 }",
        "truncated_normal { mean: 1 stddev: 2 seed: 3 }",
        "glorot_uniform { seed: 3 }", "glorot_normal { seed: 3 }",
        "he_uniform { seed: 3 }", "he_normal { seed: 3 }",
        "lecun_uniform { seed: 3 }", "lecun_normal { seed: 3 }",
        "orthogonal { gain: 2 seed: 3 }"}) {
    EXPECT_OK(build(text).status()) << text;
  }
  ASSERT_OK_AND_ASSIGN(const LayerPtr layer, build("he_normal { seed: 3 }"));
  layer->SetPath("layer");
  GraphBuilder builder(&BuiltinOps(), "test");
  builder.AddResult(
      (*layer)(builder.Parameter("x", {DType::kFloat32, {1, 2}}), kTraining));
  ASSERT_EQ(layer->weights().size(), 2u);
  EXPECT_EQ(layer->weights()[0].spec().initializer().seed(), 3u);
}

TEST(JobLayerTest, NamesAreKept) {
  ASSERT_OK_AND_ASSIGN(const LayerPtr layer,
                       Build("name: \"encoder\" lstm { units: 1 }"));
  EXPECT_EQ(layer->name(), "encoder");
}

}  // namespace
}  // namespace muster
