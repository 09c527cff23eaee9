#include "common/learn/train/job/job_layer.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers.h"
#include "common/learn/nn/regularizers.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/job_layer.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

proto::JobLayer Parse(const std::string& text) {
  proto::JobLayer layer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &layer))
      << text;
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
      {"lstm { units: 1 reset_after: true }", "lstm has no reset_after"},
      {"gru { units: 1 unit_forget_bias: true }",
       "gru has no unit_forget_bias"},
      {"simple_rnn { units: 1 recurrent_activation: TANH }",
       "simple_rnn has no recurrent_activation"},
      {"multi_head_attention { num_heads: 2 }", "multi_head_attention.key_dim"},
      {"conv1d { filters: 1 kernel_size: [ 2, 2 ] }",
       "conv1d.kernel_size must be one number, got 2 numbers"},
      {"dropout { rate: 1 }",
       "dropout.rate must be at least 0 and less than 1, got 1"},
      {"normalization { mean: 1 }", "normalization.variance must have as many"},
      {"rescaling { offset: 1 }", "rescaling.scale is missing"},
      {"call { layer: 'a' }", "call cannot stand here"},
      {"name: 'a'", "says nothing"}};
  for (const auto& [text, field] : mistakes) {
    EXPECT_THAT(Build(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(field)))
        << text;
  }
}

// Collects the names that a layer has for job files.
class NameCollector : public ConfigVisitor {
 public:
  using ConfigVisitor::Visit;
  void Visit(ConfigName name, bool&) override { Add(name); }
  void Visit(ConfigName name, int64_t&) override { Add(name); }
  void Visit(ConfigName name, double&) override { Add(name); }
  void Visit(ConfigName name, uint64_t&) override { Add(name); }
  void Visit(ConfigName name, std::vector<int64_t>&) override { Add(name); }
  void Visit(ConfigName name, std::vector<double>&) override { Add(name); }
  void Visit(ConfigName name, proto::Initializer&) override { Add(name); }
  void Visit(ConfigName name, Regularizer&) override { Add(name); }
  void VisitChoice(ConfigName name, int&,
                   absl::Span<const absl::string_view>) override {
    Add(name);
  }
  void VisitPairs(ConfigName name, std::vector<int64_t>&) override {
    Add(name);
  }
  bool IsPresent(ConfigName name, bool) override {
    Add(name);
    return true;
  }
  void Refuse(ConfigName, absl::string_view) override {}

  const absl::flat_hash_set<std::string>& names() const { return names_; }

 private:
  void Add(ConfigName name) {
    if (!name.job.empty()) names_.emplace(name.job);
  }

  absl::flat_hash_set<std::string> names_;
};

std::vector<const google::protobuf::FieldDescriptor*> KindsOfTheSchema() {
  const google::protobuf::OneofDescriptor* const kinds =
      proto::JobLayer::descriptor()->FindOneofByName("kind");
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  for (int i = 0; i < kinds->field_count(); ++i) {
    const std::string& name = kinds->field(i)->name();
    if (name != "model" && name != "call") fields.push_back(kinds->field(i));
  }
  return fields;
}

TEST(JobLayerTest, TheTableHasEveryKindOfTheSchemaAndNoOther) {
  std::vector<std::string> schema;
  for (const auto* kind : KindsOfTheSchema()) schema.push_back(kind->name());
  std::vector<std::string> table;
  for (const LayerKind& kind : kLayerKinds) table.emplace_back(kind.name);
  EXPECT_THAT(table, UnorderedElementsAreArray(schema));
}

TEST(JobLayerTest, TheSchemaHasEveryHyperparameterOfALayer) {
  for (const LayerKind& kind : kLayerKinds) {
    SCOPED_TRACE(kind.name);
    const google::protobuf::Descriptor* const message =
        proto::JobLayer::descriptor()
            ->FindFieldByName(std::string(kind.name))
            ->message_type();
    NameCollector visitor;
    kind.make()->VisitConfig(visitor);
    for (const std::string& name : visitor.names()) {
      EXPECT_NE(message->FindFieldByName(name), nullptr) << name;
    }
  }
}

// A message may be shared, so one of its layers has to have the field.
TEST(JobLayerTest, EveryFieldOfTheSchemaIsAHyperparameterOfALayer) {
  absl::flat_hash_set<std::string> known;
  absl::flat_hash_set<std::string> fields;
  for (const auto* kind : KindsOfTheSchema()) {
    const google::protobuf::Descriptor& message = *kind->message_type();
    for (int i = 0; i < message.field_count(); ++i) {
      fields.insert(message.field(i)->full_name());
    }
    for (const LayerKind& layer : kLayerKinds) {
      if (layer.name != kind->name()) continue;
      NameCollector visitor;
      layer.make()->VisitConfig(visitor);
      for (const std::string& name : visitor.names()) {
        known.insert(absl::StrCat(message.full_name(), ".", name));
      }
    }
  }
  EXPECT_EQ(fields, known);
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

TEST(JobLayerTest, NamesAreKept) {
  ASSERT_OK_AND_ASSIGN(const LayerPtr layer,
                       Build("name: \"encoder\" lstm { units: 1 }"));
  EXPECT_EQ(layer->name(), "encoder");
}

}  // namespace
}  // namespace muster
