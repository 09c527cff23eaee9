#include "common/learn/train/job/job_model.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/job/testing/parse_job_message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job_model.pb.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<LayerPtr> Parse(const std::string& text) {
  proto::JobModel job;
  EXPECT_TRUE(ParseJobMessage(text, &job));
  return BuildJobModel(job);
}

// Shapes of the outputs for inputs of these types.
absl::StatusOr<std::vector<Shape>> Build(const LayerPtr& model,
                                         std::vector<TensorType> inputs = {}) {
  model->SetPath("");
  if (inputs.empty()) inputs = model->input_types();
  GraphBuilder builder(&BuiltinOps(), "test");
  std::vector<Value> values;
  for (const TensorType& type : inputs) {
    values.push_back(builder.Parameter("x", type));
  }
  for (const Value& output : model->CallAll(values)) builder.AddResult(output);
  absl::StatusOr<Graph> graph = std::move(builder).Build();
  if (!graph.ok()) return graph.status();
  std::vector<Shape> shapes;
  for (const NodeOutput& output : graph->results) {
    shapes.push_back(graph->TypeOf(output).shape);
  }
  return shapes;
}

TEST(JobModelTest, WrappersHaveModelsAndLayersWithOptions) {
  ASSERT_OK_AND_ASSIGN(const LayerPtr model, Parse(R"(
    functional {
      inputs { name: "frames" shape: [5, 4, 4, 1] }
      layers { name: "each" time_distributed { layer { model { sequential {
        layers { conv2d { filters: 2 kernel_size: 3 } }
        layers { flatten {} } } } } } }
      layers { name: "both" bidirectional { layer {
        dtype_policy: "mixed_bfloat16" trainable: false lstm { units: 3 } } } }
    })"));
  ASSERT_OK_AND_ASSIGN(const std::vector<Shape> shapes, Build(model));
  EXPECT_THAT(shapes, ElementsAre(Shape({-1, 6})));
  for (const LayerPtr& layer : model->layers()) {
    if (layer->name() == "each") {
      EXPECT_THAT(layer->output_shapes(), ElementsAre(Shape({-1, 5, 8})));
    }
    if (layer->name() != "both") continue;
    ASSERT_EQ(layer->layers().size(), 2u);
    for (const LayerPtr& direction : layer->layers()) {
      EXPECT_EQ(direction->dtype_policy(), kMixedBfloat16Policy);
      EXPECT_FALSE(direction->trainable());
    }
  }
}

// Such names could not be saved, which would show after training.
TEST(JobModelTest, NamesWithEmptyPartsAreRefused) {
  for (const std::string name : {"/x", "a//b", "a/"}) {
    EXPECT_THAT(Parse(absl::StrCat("sequential { layers { name: \"", name,
                                   "\" dense { units: 1 } } }")),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("layers[0]"), HasSubstr(name))));
    EXPECT_THAT(Parse(absl::StrCat(
                    "functional { inputs { name: \"i\" shape: 2 } layers { "
                    "name: \"",
                    name, "\" dense { units: 1 } } }")),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(name)));
  }
}

TEST(JobModelTest, FunctionalModelsShareLayersAndHaveSeveralOutputs) {
  ASSERT_OK_AND_ASSIGN(const LayerPtr model, Parse(R"(
    functional {
      inputs { name: "left" shape: [8, 8, 1] }
      inputs { name: "right" shape: [8, 8, 1] dtype: "uint8" }
      layers { name: "a" conv2d { filters: 4 kernel_size: 3 padding: SAME }
               inputs: "left" }
      layers { name: "b" call { layer: "a" } inputs: "right" }
      layers { add {} inputs: ["a", "b"] }
      layers { batch_normalization {} }
      layers { relu { max_value: 6 } }
      layers { name: "pooled" max_pooling2d { pool_size: [2, 4] } }
      layers { flatten {} }
      layers { name: "logits" dense { units: 3 } }
      layers { name: "size" global_average_pooling2d {} inputs: "pooled" }
      outputs: ["logits", "size"]
      name: "two_towers"
    })"));
  ASSERT_OK_AND_ASSIGN(const std::vector<Shape> shapes, Build(model));
  EXPECT_THAT(shapes, ElementsAre(Shape({-1, 3}), Shape({-1, 4})));
  EXPECT_EQ(model->name(), "two_towers");
  EXPECT_EQ(model->input_types()[1].dtype, DType::kUint8);
  std::vector<std::string> names;
  for (const Weight& weight : model->weights()) names.push_back(weight.name());
  EXPECT_THAT(
      names,
      ElementsAre("a/kernel", "a/bias", "batch_normalization/gamma",
                  "batch_normalization/beta", "batch_normalization/moving_mean",
                  "batch_normalization/moving_variance", "logits/kernel",
                  "logits/bias"));
}

TEST(JobModelTest, CallsALayerInReverse) {
  ASSERT_OK_AND_ASSIGN(const LayerPtr model, Parse(R"(
    functional {
      inputs { name: "ids" shape: [7] dtype: "int64" }
      layers { name: "tokens"
               reversible_embedding { input_dim: 9 output_dim: 4 } }
      layers { name: "logits" call { layer: "tokens" reverse: true } }
      outputs: ["tokens", "logits"]
    })"));
  ASSERT_OK_AND_ASSIGN(const std::vector<Shape> shapes, Build(model));
  EXPECT_THAT(shapes, ElementsAre(Shape({-1, 7, 4}), Shape({-1, 7, 9})));
  EXPECT_EQ(model->weights().size(), 1u);
}

TEST(JobModelTest, EveryLayerOfImageModelsCanBeNamed) {
  ASSERT_OK_AND_ASSIGN(const LayerPtr model, Parse(R"(
    sequential {
      layers { zero_padding2d { padding: [0, 1, 0, 1] } }
      layers { conv2d { filters: 6 kernel_size: 3 strides: 2 groups: 1
                        dilation_rate: 1 use_bias: false activation: RELU
                        kernel_initializer { he_normal {} } } }
      layers { depthwise_conv2d { kernel_size: [3, 1] padding: SAME
                                  depth_multiplier: 2 } }
      layers { separable_conv2d { filters: 4 kernel_size: 3 padding: SAME } }
      layers { average_pooling2d { strides: 1 padding: SAME } }
      layers { name: "inner" model { sequential { layers { permute {
          dims: [3, 1, 2] } } } } }
      layers { reshape { target_shape: [-1, 2] } }
      layers { conv1d { filters: 5 kernel_size: 2 } }
    })"));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Shape> shapes,
      Build(model, {{DType::kFloat32, {Shape::kUnknown, 8, 8, 3}}}));
  EXPECT_THAT(shapes, ElementsAre(Shape({-1, 31, 5})));
  EXPECT_EQ(model->layers()[5]->name(), "inner");
}

TEST(JobModelTest, MergesAndGlobalPoolingCanBeNamed) {
  for (const char* merge : {"add", "subtract", "multiply", "average", "maximum",
                            "minimum", "concatenate"}) {
    ASSERT_OK_AND_ASSIGN(
        const LayerPtr model,
        Parse(absl::StrCat(
            "functional { inputs { name: 'a' shape: [4, 4, 2] }"
            " inputs { name: 'b' shape: [4, 4, 2] }"
            " layers { ",
            merge,
            " {} }"
            " layers { global_max_pooling2d { keepdims: true } } }")));
    ASSERT_OK_AND_ASSIGN(const std::vector<Shape> shapes, Build(model));
    const int64_t channels = std::string(merge) == "concatenate" ? 4 : 2;
    EXPECT_THAT(shapes, ElementsAre(Shape({-1, 1, 1, channels}))) << merge;
  }
}

TEST(JobModelTest, MobileNetV2IsOneLine) {
  ASSERT_OK_AND_ASSIGN(const LayerPtr model, Parse(R"(
    application { mobilenet_v2 { input_shape: [96, 96, 3] alpha: 0.35
                                 classes: 2 } })"));
  EXPECT_EQ(model->name(), "mobilenetv2_0.35_96");
  ASSERT_OK_AND_ASSIGN(const std::vector<Shape> shapes, Build(model));
  EXPECT_THAT(shapes, ElementsAre(Shape({-1, 2})));
}

TEST(JobModelTest, OtherApplicationsAreOneLine) {
  const std::pair<std::string, std::string> kKindsAndNames[] = {
      {"resnet50", "resnet50"},
      {"vgg16", "vgg16"},
      {"efficientnet_b0", "efficientnetb0"}};
  for (const auto& [kind, name] : kKindsAndNames) {
    ASSERT_OK_AND_ASSIGN(
        const LayerPtr model,
        Parse(absl::StrCat("application { ", kind,
                           " { input_shape: [32, 32, 3] classes: 2 } }")));
    EXPECT_EQ(model->name(), name);
    ASSERT_OK_AND_ASSIGN(const std::vector<Shape> shapes, Build(model));
    EXPECT_THAT(shapes, ElementsAre(Shape({-1, 2})));
  }
  ASSERT_OK_AND_ASSIGN(const LayerPtr model, Parse(R"(
    application { mobilenet { input_shape: [64, 64, 3] alpha: 0.25
                              depth_multiplier: 2 dropout: 0.5
                              include_top: false pooling: MAX } })"));
  EXPECT_EQ(model->name(), "mobilenet_0.25_64");
  ASSERT_OK_AND_ASSIGN(const std::vector<Shape> shapes, Build(model));
  EXPECT_THAT(shapes, ElementsAre(Shape({-1, 256})));
}

void ExpectRefused(const std::string& text, const std::string& message) {
  EXPECT_THAT(Parse(text),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
      << text;
}

TEST(JobModelTest, AnyLayerCanHaveAnActivityRegularizer) {
  ASSERT_OK_AND_ASSIGN(const LayerPtr model, Parse(R"(
    sequential {
      layers { activity_regularizer { l1_l2 { l1: 1 l2: 2 } }
               dense { units: 3 } }
      layers { relu {} }
    })"));
  const auto& factors = model->layers()[0]->activity_regularizer().factors();
  ASSERT_TRUE(factors.has_value());
  EXPECT_EQ(factors->l1, 1);
  EXPECT_EQ(factors->l2, 2);
  EXPECT_FALSE(model->layers()[1]->activity_regularizer());
  EXPECT_THAT(Parse(R"(
    sequential { layers { activity_regularizer {} relu {} } })"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("layers[0]: activity_regularizer: says nothing"
                                 "; expected for example l2 {}")));
  EXPECT_THAT(Parse(R"(
    sequential { layers { rnn { cell { activity_regularizer { l2 {} }
                                       lstm_cell { units: 2 } } } } })"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("activity_regularizer: cells have none")));
}

TEST(JobModelTest, WeightsAreRegularizedAndFrozenAsTheJobSays) {
  ASSERT_OK_AND_ASSIGN(const LayerPtr model, Parse(R"(
    functional {
      inputs { name: "image" shape: [8, 8, 2] }
      layers { conv2d { filters: 4 kernel_size: 3
                        kernel_regularizer { l2 {} }
                        bias_regularizer { l1 { l1: 0.1 } } } }
      layers { depthwise_conv2d { kernel_size: 3
                                  depthwise_regularizer { l1 {} } } }
      layers { batch_normalization { gamma_regularizer { l2 {} } } }
      layers { separable_conv2d { filters: 3 kernel_size: 1
                                  pointwise_regularizer { l2 {} } }
               trainable: false }
      layers { layer_normalization { beta_regularizer { l2 {} } } }
      layers { reshape { target_shape: [4, 12] } }
      layers { lstm { units: 2 return_sequences: true
                      recurrent_regularizer { l1_l2 { l1: 1 l2: 2 } } } }
      layers { conv1d { filters: 2 kernel_size: 2
                        kernel_regularizer { l2 { l2: 1 } } } }
      layers { flatten {} }
      layers { dense { units: 2 bias_regularizer { l2 {} } } }
    })"));
  ASSERT_OK(Build(model));
  std::vector<std::string> regularized;
  std::vector<std::string> frozen;
  for (const Weight& weight : model->weights()) {
    if (weight.regularizer()) regularized.push_back(weight.name());
    if (!weight.trainable()) frozen.push_back(weight.name());
  }
  EXPECT_THAT(
      regularized,
      ElementsAre("conv2d/kernel", "conv2d/bias", "depthwise_conv2d/kernel",
                  "batch_normalization/gamma",
                  "separable_conv2d/pointwise_kernel",
                  "layer_normalization/beta", "lstm/lstm_cell/recurrent_kernel",
                  "conv1d/kernel", "dense/bias"));
  EXPECT_THAT(frozen, ElementsAre("batch_normalization/moving_mean",
                                  "batch_normalization/moving_variance",
                                  "separable_conv2d/depthwise_kernel",
                                  "separable_conv2d/pointwise_kernel",
                                  "separable_conv2d/bias"));
}

TEST(JobModelTest, MistakesNameTheField) {
  ExpectRefused("", "model has no layers");
  ExpectRefused("application {}", "model.application says nothing");
  ExpectRefused("application { mobilenet_v2 { classes: -1 } }", "one class");
  ExpectRefused("application { vgg16 { classes: -1 } }", "VGG16: expected");
  ExpectRefused("sequential { layers { conv2d { filters: 2 } } }",
                "model.sequential.layers[0]: conv2d.kernel_size must be");
  ExpectRefused("sequential { layers { conv2d { kernel_size: 2 } } }",
                "conv2d.filters must be at least 1");
  ExpectRefused(
      "sequential { layers { dense { units: 1 "
      "kernel_regularizer { l2 { l2: -1 } } } } }",
      "dense.kernel_regularizer must have finite factors of at least 0");
  ExpectRefused("sequential { layers { max_pooling2d { pool_size: 0 } } }",
                "max_pooling2d.pool_size must be at least 1");
  ExpectRefused("sequential { layers { zero_padding2d { padding: [1,2,3] } } }",
                "zero_padding2d.padding must be");
  ExpectRefused("sequential { layers { call { layer: 'a' } } }",
                "functional model");
}

TEST(JobModelTest, MistakesInFunctionalModelsNameTheLayer) {
  const std::string input = "functional { inputs { name: 'x' shape: 4 } ";
  ExpectRefused(input + "}", "needs inputs and layers");
  ExpectRefused(input + "layers { dense { units: 1 } inputs: 'y' } }",
                "model.functional.layers[0]: no layer or input before it is "
                "named \"y\"");
  ExpectRefused(input + "layers { dense { units: 1 } inputs: 'x:1' } }",
                "\"x:1\": x has 1 outputs");
  ExpectRefused(input + "layers { name: 'x' dense { units: 1 } } }",
                "another layer or input named \"x\"");
  ExpectRefused(input + "layers { call { layer: 'y' } } }",
                "call.layer: no layer \"y\"");
  ExpectRefused(input + "layers { dense { units: 1 } } outputs: 'z' }",
                "model.functional.outputs[0]");
  ExpectRefused("functional { inputs { shape: 4 } }",
                "model.functional.inputs[0]: an input needs a name");
}

}  // namespace
}  // namespace muster
