#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/job/job_image_layers.h"
#include "common/learn/train/job/job_sequence_layers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

proto::JobLayer Parse(const std::string& text) {
  proto::JobLayer layer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &layer))
      << text;
  return layer;
}

bool IsForSequences(const proto::JobLayer& layer) {
  return layer.kind_case() >= proto::JobLayer::kSimpleRnn;
}

absl::StatusOr<LayerPtr> Build(const std::string& text) {
  const proto::JobLayer layer = Parse(text);
  return IsForSequences(layer) ? BuildJobSequenceLayer(layer)
                               : BuildJobImageLayer(layer);
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

TEST(JobLayersTest, DescribeLayersForImages) {
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

TEST(JobLayersTest, DescribeLayersForSequences) {
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

TEST(JobLayersTest, MistakesNameTheField) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"resizing { height: 4 }", "resizing.width"},
      {"random_rotation {}", "random_rotation.factor"},
      {"random_zoom { height_factor: [ 1, 2, 3 ] }",
       "random_zoom.height_factor"},
      {"lstm {}", "lstm.units"},
      {"lstm { units: 1 reset_after: true }", "lstm has no reset_after"},
      {"gru { units: 1 unit_forget_bias: true }",
       "gru has no unit_forget_bias"},
      {"simple_rnn { units: 1 recurrent_activation: TANH }",
       "simple_rnn has no recurrent_activation"},
      {"multi_head_attention { num_heads: 2 }",
       "multi_head_attention.key_dim"}};
  for (const auto& [text, field] : mistakes) {
    EXPECT_THAT(Build(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(field)))
        << text;
  }
}

TEST(JobLayersTest, NamesAreKept) {
  ASSERT_OK_AND_ASSIGN(const LayerPtr layer,
                       Build("name: \"encoder\" lstm { units: 1 }"));
  EXPECT_EQ(layer->name(), "encoder");
}

}  // namespace
}  // namespace muster
