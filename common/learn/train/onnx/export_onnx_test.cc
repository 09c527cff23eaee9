#include "common/learn/train/onnx/export_onnx.h"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/onnx.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ShapeText(const proto::OnnxShape& shape) {
  std::vector<std::string> extents;
  for (const auto& dim : shape.dim()) {
    extents.push_back(dim.has_dim_value()   ? absl::StrCat(dim.dim_value())
                      : dim.has_dim_param() ? dim.dim_param()
                                            : "?");
  }
  return absl::StrCat("[", absl::StrJoin(extents, ","), "]");
}

std::string ValueText(const proto::OnnxValueInfo& value) {
  const auto& type = value.type().tensor_type();
  return absl::StrCat(value.name(), " ",
                      proto::OnnxTensor::DataType_Name(type.elem_type()),
                      ShapeText(type.shape()));
}

std::string AttributeText(const proto::OnnxAttribute& attribute) {
  switch (attribute.type()) {
    case proto::OnnxAttribute::INT:
      return absl::StrCat(attribute.name(), "=", attribute.i());
    case proto::OnnxAttribute::FLOAT:
      return absl::StrCat(attribute.name(), "=", attribute.f());
    case proto::OnnxAttribute::STRING:
      return absl::StrCat(attribute.name(), "=", attribute.s());
    case proto::OnnxAttribute::INTS:
      return absl::StrCat(attribute.name(), "=",
                          absl::StrJoin(attribute.ints(), ","));
    default:
      return attribute.name();
  }
}

std::string NodeText(const proto::OnnxNode& node) {
  std::vector<std::string> parts;
  for (const auto& attribute : node.attribute()) {
    parts.push_back(AttributeText(attribute));
  }
  return absl::StrCat(absl::StrJoin(node.output(), " "), " = ", node.op_type(),
                      "(", absl::StrJoin(node.input(), ", "), ")",
                      parts.empty() ? "" : " ", absl::StrJoin(parts, " "));
}

// The file as text, a line for each part.
std::string Text(const proto::OnnxModel& model) {
  std::string text = absl::StrCat("format ", model.ir_version(), ", operators ",
                                  model.opset_import(0).version(), ", by ",
                                  model.producer_name(), "\n");
  for (const auto& input : model.graph().input()) {
    absl::StrAppend(&text, "input ", ValueText(input), "\n");
  }
  for (const auto& tensor : model.graph().initializer()) {
    absl::StrAppend(&text, "constant ", tensor.name(), " ",
                    proto::OnnxTensor::DataType_Name(tensor.data_type()), "[",
                    absl::StrJoin(tensor.dims(), ","), "]\n");
  }
  for (const auto& node : model.graph().node()) {
    absl::StrAppend(&text, NodeText(node), "\n");
  }
  for (const auto& output : model.graph().output()) {
    absl::StrAppend(&text, "output ", ValueText(output), "\n");
  }
  return text;
}

std::vector<std::string> OpTypes(const proto::OnnxModel& model) {
  std::vector<std::string> types;
  for (const auto& node : model.graph().node()) {
    types.push_back(node.op_type());
  }
  return types;
}

absl::StatusOr<proto::OnnxModel> Exported(Model& model,
                                          const ExportOptions& options = {}) {
  const std::string path = testing::TempDir() + "/model.onnx";
  RETURN_IF_ERROR(model.Export(path, options));
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  proto::OnnxModel exported;
  if (!exported.ParseFromString(bytes)) {
    return absl::DataLossError("the file is not a message of protobuf");
  }
  return exported;
}

const proto::OnnxTensor* FindConstant(const proto::OnnxModel& model,
                                      const std::string& name) {
  for (const auto& tensor : model.graph().initializer()) {
    if (tensor.name() == name) return &tensor;
  }
  return nullptr;
}

std::vector<float> FloatsOf(const proto::OnnxTensor& tensor) {
  const auto* const begin =
      reinterpret_cast<const float*>(tensor.raw_data().data());
  return {begin, begin + tensor.raw_data().size() / sizeof(float)};
}

TEST(ExportOnnxTest, WritesAnMlp) {
  Model model = Sequential({Input({4}, {.name = "features"}),
                            Dense(3, {.activation = Activation::kRelu}),
                            Dense(2, {.name = "classes"})});
  ASSERT_OK(model.Compile({}));
  ASSERT_OK_AND_ASSIGN(const proto::OnnxModel exported, Exported(model));
  EXPECT_EQ(Text(exported),
            "format 8, operators 17, by Muster\n"
            "input features FLOAT[batch,4]\n"
            "constant dense/kernel FLOAT[4,3]\n"
            "constant dense/bias FLOAT[3]\n"
            "constant classes/kernel FLOAT[3,2]\n"
            "constant classes/bias FLOAT[2]\n"
            "dense/MatMul = MatMul(features, dense/kernel)\n"
            "dense/Add = Add(dense/MatMul, dense/bias)\n"
            "dense/Relu = Relu(dense/Add)\n"
            "classes/MatMul = MatMul(dense/Relu, classes/kernel)\n"
            "classes/Add = Add(classes/MatMul, classes/bias)\n"
            "classes = Identity(classes/Add)\n"
            "output classes FLOAT[batch,2]\n");
  EXPECT_EQ(exported.producer_version(), "0.1.0");
}

TEST(ExportOnnxTest, WritesTheWeightsThatTheModelHasNow) {
  Model model = Sequential({Input({2}), Dense(1)});
  ASSERT_OK(model.Compile({}));
  ASSERT_OK(model.SetWeights({Tensor::FromValues<float>({2, 1}, {3, -4}),
                              Tensor::FromValues<float>({1}, {5})}));
  ASSERT_OK_AND_ASSIGN(const proto::OnnxModel exported, Exported(model));
  ASSERT_NE(FindConstant(exported, "dense/kernel"), nullptr);
  EXPECT_THAT(FloatsOf(*FindConstant(exported, "dense/kernel")),
              ElementsAre(3, -4));
  EXPECT_THAT(FloatsOf(*FindConstant(exported, "dense/bias")), ElementsAre(5));
}

TEST(ExportOnnxTest, WritesWhatReplicasHaveTrained) {
  ASSERT_OK_AND_ASSIGN(
      const auto strategy,
      MirroredStrategy::Create({.devices = {"cpu:0", "cpu:1"}}));
  Model model = Sequential({Input({1}), Dense(1)});
  ASSERT_OK(model.Compile(
      *strategy, {.optimizer = Sgd({.learning_rate = 0.1}), .loss = "mse"}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> first, model.GetWeights());
  const Tensor x = Tensor::FromValues<float>({4, 1}, {1, 2, 3, 4});
  ASSERT_OK(model.Fit({x, x}, {.batch_size = 4, .verbose = Verbosity::kSilent})
                .status());
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> trained, model.GetWeights());
  ASSERT_OK_AND_ASSIGN(const proto::OnnxModel exported, Exported(model));
  const float kernel = FloatsOf(*FindConstant(exported, "dense/kernel"))[0];
  EXPECT_EQ(kernel, trained[0].scalar<float>());
  EXPECT_NE(kernel, first[0].scalar<float>());
}

// Between the first convolution and the end no axes are moved.
TEST(ExportOnnxTest, KeepsChannelsFirst) {
  Model model =
      Sequential({Input({8, 8, 2}), Conv2D(4, 3, {.padding = Padding::kSame}),
                  BatchNormalization(), ReLU(), MaxPooling2D(2), Conv2D(3, 2),
                  GlobalAveragePooling2D()});
  ASSERT_OK(model.Compile({}));
  ASSERT_OK_AND_ASSIGN(const proto::OnnxModel exported, Exported(model));
  EXPECT_THAT(
      OpTypes(exported),
      ElementsAre("Transpose", "Conv", "Add", "BatchNormalization", "Relu",
                  "MaxPool", "Conv", "Add", "ReduceMean", "Identity"));
  EXPECT_THAT(Text(exported),
              AllOf(HasSubstr("constant conv2d/kernel FLOAT[4,2,3,3]"),
                    HasSubstr("FLOAT[1,4,1,1]"),
                    HasSubstr("kernel_shape=3,3 strides=1,1 pads=1,1,1,1 "
                              "dilations=1,1 group=1"),
                    HasSubstr("keepdims=0 axes=2,3")));
}

TEST(ExportOnnxTest, NamesSeveralInputsAndOutputs) {
  const LayerOutput text =
      Input({Shape::kUnknown}, {.dtype = DType::kInt64, .name = "text"});
  const LayerOutput price = Input({1}, {.name = "price"});
  const LayerOutput words = Embedding(10, 4, {.name = "words"})(text);
  const LayerOutput joined =
      Concatenate()({GlobalAveragePooling1D()(words), price});
  Model model({text, price}, {Dense(1, {.name = "score"})(joined), words});
  ASSERT_OK(model.Compile({}));
  ASSERT_OK_AND_ASSIGN(const proto::OnnxModel exported, Exported(model));
  EXPECT_THAT(Text(exported),
              AllOf(HasSubstr("input text INT64[batch,text_dim_1]\n"
                              "input price FLOAT[batch,1]\n"),
                    HasSubstr("output score FLOAT[batch,1]\n"
                              "output words FLOAT[batch,words_dim_1,4]\n")));
}

TEST(ExportOnnxTest, ExportsTheSignatureOfTheOptions) {
  Model model = Sequential({Conv2D(2, 3), GlobalMaxPooling2D()});
  ASSERT_OK(model.Compile({}));
  ASSERT_OK(model.Build({DType::kFloat32, {1, 8, 8, 3}}));
  ASSERT_OK_AND_ASSIGN(
      const proto::OnnxModel exported,
      Exported(model,
               {.input_signature = {{DType::kFloat32, {-1, -1, -1, 3}}}}));
  EXPECT_THAT(Text(exported),
              HasSubstr("input x FLOAT[batch,x_dim_1,x_dim_2,3]"));
  EXPECT_THAT(
      Exported(model, {.input_signature = {{DType::kFloat32, {-1, 8, 8, 4}}}})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("does not fit 4 channels")));
}

TEST(ExportOnnxTest, ExportsLayerNormalizationAsOneOperator) {
  for (const auto& [axes, axis] :
       std::vector<std::pair<std::vector<int64_t>, std::string>>{
           {{-1}, "axis=2"}, {{1, 2}, "axis=1"}}) {
    for (const bool has_weights : {true, false}) {
      Model model = Sequential(
          {Input({3, 4}),
           LayerNormalization(
               {.axis = axes, .center = has_weights, .scale = has_weights})});
      ASSERT_OK(model.Compile({}));
      ASSERT_OK_AND_ASSIGN(const proto::OnnxModel exported, Exported(model));
      EXPECT_THAT(OpTypes(exported),
                  ElementsAre("LayerNormalization", "Identity"));
      EXPECT_THAT(Text(exported), HasSubstr(axis + " epsilon=0.001"));
    }
  }
}

// Muster's gates are input, forget, cell, output; ONNX's input, output, forget,
// cell.
TEST(ExportOnnxTest, OrdersTheGatesOfAnLstm) {
  Model model = Sequential({Input({Shape::kUnknown, 1}), LSTM(1)});
  ASSERT_OK(model.Compile({}));
  ASSERT_OK(
      model.SetWeights({Tensor::FromValues<float>({1, 4}, {1, 2, 3, 4}),
                        Tensor::FromValues<float>({1, 4}, {5, 6, 7, 8}),
                        Tensor::FromValues<float>({4}, {9, 10, 11, 12})}));
  ASSERT_OK_AND_ASSIGN(const proto::OnnxModel exported, Exported(model));
  EXPECT_THAT(OpTypes(exported),
              ElementsAre("Transpose", "LSTM", "Squeeze", "Identity"));
  const proto::OnnxNode& lstm = exported.graph().node(1);
  const auto weights = [&](int i) {
    return FloatsOf(*FindConstant(exported, lstm.input(i)));
  };
  EXPECT_THAT(weights(1), ElementsAre(1, 4, 2, 3));
  EXPECT_THAT(weights(2), ElementsAre(5, 8, 6, 7));
  EXPECT_THAT(weights(3), ElementsAre(9, 12, 10, 11, 0, 0, 0, 0));
}

TEST(ExportOnnxTest, ExportsSixteenBitFloatsAsFloat32) {
  const LayerPtr dense = Dense(2);
  dense->set_dtype_policy(kMixedBfloat16Policy);
  Model model = Sequential({Input({2}), dense});
  ASSERT_OK(model.Compile({}));
  const float value = 1.0f + 1.0f / 4096;  // bfloat16 does not have it.
  ASSERT_OK(model.SetWeights({Tensor::Full(DType::kFloat32, {2, 2}, value),
                              Tensor::Full(DType::kFloat32, {2}, 0)}));
  ASSERT_OK_AND_ASSIGN(const proto::OnnxModel exported, Exported(model));
  EXPECT_THAT(Text(exported), AllOf(HasSubstr("output dense FLOAT[batch,2]"),
                                    Not(HasSubstr("Cast"))));
  EXPECT_THAT(FloatsOf(*FindConstant(exported, "dense/kernel")),
              ElementsAre(value, value, value, value));
}

TEST(ExportOnnxTest, RefusesStringsByName) {
  Model lookup =
      Sequential({Input({1}, {.dtype = DType::kString, .name = "city"}),
                  StringLookup({.vocabulary = {"Bonn", "Köln"}})});
  ASSERT_OK(lookup.Compile({}));
  EXPECT_THAT(Exported(lookup).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("input city is string[?,1]")));
  Model hashing = Sequential(
      {Input({1}, {.dtype = DType::kInt64}), Hashing(5, {.name = "buckets"})});
  ASSERT_OK(hashing.Compile({}));
  EXPECT_THAT(
      Exported(hashing).status(),
      StatusIs(absl::StatusCode::kUnimplemented,
               AllOf(HasSubstr("op HashBucket, node buckets/HashBucket of "
                               "layer buckets: "),
                     HasSubstr("export the model behind the layer"))));
}

TEST(ExportOnnxTest, RefusesOtherNamesAndUnbuiltModels) {
  Model model = Sequential({Dense(1)});
  ASSERT_OK(model.Compile({}));
  EXPECT_THAT(model.Export("model.pb"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("names end in .onnx")));
  EXPECT_THAT(model.Export("model.onnx"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("has no weights yet")));
}

TEST(ExportOnnxTest, RefusesModelsThatAreTooLarge) {
  GraphBuilder builder(&BuiltinOps(), "large");
  const VariableHandle weight{.name = "weight",
                              .type = {DType::kFloat32, {100}}};
  builder.AddResult(builder.Parameter("x", {DType::kFloat32, {-1, 100}}) +
                    ReadVariable(builder, weight));
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Build());
  const LayerPtr layer = Dense(1);
  const auto convert = [&](int64_t bytes_max) {
    return ToOnnxModel(
               {.layers = *layer,
                .graph = graph,
                .values = {{"weight", Tensor::Zeros(DType::kFloat32, {100})}},
                .muster_version = "1",
                .bytes_max = bytes_max})
        .status();
  };
  EXPECT_OK(convert(400));
  EXPECT_THAT(convert(399),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("400 bytes, an ONNX file at most 399")));
}

}  // namespace
}  // namespace muster
