#include "common/learn/train/keras/keras_model_reader.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/normalization.h"
#include "common/learn/train/keras/keras_layer_config.h"
#include "common/learn/train/keras/keras_names.h"
#include "common/learn/train/keras/keras_object.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A Sequential model with one layer besides its input.
KerasJson SequentialWith(const std::string& layer) {
  return KerasJson::parse(absl::StrCat(
      R"({"module": "keras", "class_name": "Sequential", "config": {
        "name": "s", "layers": [
          {"module": "keras.layers", "class_name": "InputLayer",
           "config": {"batch_shape": [null, 4], "name": "x"}},)",
      layer, "]}}"));
}

KerasJson DenseWith(const std::string& arguments) {
  return SequentialWith(
      absl::StrCat(R"({"module": "keras.layers", "class_name": "Dense",
                       "config": {"name": "h", "units": 3)",
                   arguments, "}}"));
}

auto IsRefused(const std::string& message) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message));
}

TEST(KerasModelReaderTest, MakesLayersWithTheirNames) {
  ASSERT_OK_AND_ASSIGN(const LayerPtr model,
                       LayersFromKeras(DenseWith(R"(, "trainable": false)")));
  EXPECT_EQ(model->name(), "s");
  ASSERT_EQ(model->layers().size(), 1u);
  EXPECT_EQ(model->layers()[0]->name(), "h");
  EXPECT_FALSE(model->layers()[0]->trainable());
  EXPECT_EQ(model->input_types().size(), 1u);
}

TEST(KerasModelReaderTest, AcceptsWhatAsksForNothing) {
  EXPECT_OK(LayersFromKeras(
                DenseWith(R"(, "kernel_constraint": null, "activation": null)"))
                .status());
}

TEST(KerasModelReaderTest, NamesPlaceAndArgument) {
  EXPECT_THAT(
      LayersFromKeras(DenseWith(R"(, "kernel_penalty": {"class_name": "N"})")),
      IsRefused("model s, layer h (Dense): Muster has no argument "
                "kernel_penalty"));
  EXPECT_THAT(
      LayersFromKeras(DenseWith(R"(, "kernel_constraint": "unit_nrm")")),
      IsRefused("kernel_constraint: Muster has no constraint unit_nrm"));
  EXPECT_THAT(LayersFromKeras(DenseWith(
                  R"(, "kernel_constraint": {"class_name": "MaxNorm",)"
                  R"( "config": {"max_value": -2, "axis": 0}})")),
              IsRefused("kernel_constraint: constraint max_norm: max_value is "
                        "-2, expected 0 or more"));
  EXPECT_THAT(LayersFromKeras(DenseWith(R"(, "use_biass": false)")),
              IsRefused("no argument use_biass; did you mean \"use_bias\"?"));
  EXPECT_THAT(LayersFromKeras(DenseWith(R"(, "activation": "rellu")")),
              IsRefused("did you mean \"relu\"?"));
  EXPECT_THAT(LayersFromKeras(DenseWith(R"(, "use_bias": "yes")")),
              IsRefused("use_bias must be true or false, got a string"));
  EXPECT_THAT(
      LayersFromKeras(DenseWith(R"(, "kernel_initializer": "identity")")),
      IsRefused("kernel_initializer: Muster has no initializer identity"));
  EXPECT_THAT(LayersFromKeras(DenseWith(R"(, "units": 0)")),
              IsRefused("units must be at least 1"));
}

TEST(KerasModelReaderTest, LayersHaveActivityRegularizersButCells) {
  ASSERT_OK_AND_ASSIGN(const LayerPtr model,
                       LayersFromKeras(DenseWith(R"(, "activity_regularizer":
          {"module": "keras.regularizers", "class_name": "L1",
           "config": {"l1": 0.25}})")));
  const auto& factors = model->layers()[0]->activity_regularizer().factors();
  ASSERT_TRUE(factors.has_value());
  EXPECT_EQ(factors->l1, 0.25);
  EXPECT_EQ(factors->l2, 0);
  EXPECT_THAT(LayersFromKeras(SequentialWith(
                  R"({"module": "keras.layers", "class_name": "RNN",
                      "config": {"name": "r", "cell":
                        {"module": "keras.layers", "class_name": "GRUCell",
                         "config": {"name": "c", "units": 2,
                                    "activity_regularizer": "l2"}}}})")),
              IsRefused("activity_regularizer is not supported for cells"));
}

TEST(KerasModelReaderTest, RefusesLayersThatItDoesNotHave) {
  EXPECT_THAT(LayersFromKeras(SequentialWith(
                  R"({"class_name": "Dens", "config": {"name": "d"}})")),
              IsRefused("no layer Dens; did you mean \"Dense\"?"));
  EXPECT_THAT(
      LayersFromKeras(SequentialWith(
          R"({"class_name": "Lambda", "config": {"name": "l", "function": {}}})")),
      IsRefused("no layer Lambda"));
  EXPECT_THAT(LayersFromKeras(SequentialWith(
                  R"({"module": "mine", "class_name": "Dense",
                      "config": {}, "registered_name": "mine>Dense"})")),
              IsRefused("mine.Dense is not part of Keras"));
}

// keras.layers has these classes under two names.
TEST(KerasModelReaderTest, KnowsEveryNameOfAClass) {
  constexpr struct {
    const char* alias;
    const char* name;
  } kAliases[] = {{"AvgPool1D", "AveragePooling1D"},
                  {"GlobalAvgPool1D", "GlobalAveragePooling1D"},
                  {"MaxPool1D", "MaxPooling1D"},
                  {"GlobalMaxPool1D", "GlobalMaxPooling1D"},
                  {"Convolution1D", "Conv1D"},
                  {"Convolution1DTranspose", "Conv1DTranspose"},
                  {"SeparableConvolution1D", "SeparableConv1D"},
                  {"AvgPool2D", "AveragePooling2D"},
                  {"MaxPool3D", "MaxPooling3D"},
                  {"GroupedQueryAttention", "GroupQueryAttention"}};
  for (const auto& [alias, name] : kAliases) {
    ASSERT_NE(FindKerasLayerKind(alias), nullptr) << alias;
    EXPECT_EQ(FindKerasLayerKind(alias), FindKerasLayerKind(name)) << alias;
  }
  for (const char* const constraint : {"NonNeg", "non_neg", "nonneg"}) {
    EXPECT_OK(
        LayersFromKeras(DenseWith(absl::StrCat(R"(, "kernel_constraint": ")",
                                               constraint, "\"")))
            .status());
  }
  EXPECT_OK(LayersFromKeras(DenseWith(R"(, "kernel_initializer": {"module":
          "keras.initializers", "class_name": "OrthogonalInitializer",
          "config": {"gain": 1.0, "seed": null}})"))
                .status());
}

TEST(KerasModelReaderTest, RefusesOtherJson) {
  for (const char* const json :
       {"null", "3", "[]", "{}", R"({"class_name": "Sequential"})",
        R"({"class_name": "Sequential", "config": {}})",
        R"({"class_name": "Functional", "config": {"layers": [null]}})",
        R"({"class_name": "Functional", "config": {"layers": []}})",
        R"({"class_name": "Mine", "config": {}})"}) {
    EXPECT_THAT(LayersFromKeras(KerasJson::parse(json)),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << json;
  }
}

TEST(KerasModelReaderTest, RefusesLayersThatFeedThemselves) {
  EXPECT_THAT(
      LayersFromKeras(KerasJson::parse(R"(
      {"class_name": "Functional", "config": {"name": "f", "layers": [
        {"class_name": "Dense", "name": "a", "config": {"name": "a", "units": 1},
         "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__",
           "config": {"keras_history": ["a", 0, 0]}}], "kwargs": {}}]}],
        "input_layers": ["a", 0, 0], "output_layers": ["a", 0, 0]}})")),
      IsRefused("model f, layer a: its inputs are outputs of no layer"));
}

// Three layers of one input, and outputs of this structure.
KerasJson WithOutputs(const std::string& outputs) {
  std::string layers = R"({"class_name": "InputLayer", "name": "x", "config":
      {"batch_shape": [null, 5], "name": "x"}, "inbound_nodes": []})";
  for (const char* const name : {"a", "b", "c"}) {
    absl::StrAppend(
        &layers, R"(, {"class_name": "Dense", "name": ")", name,
        R"(", "config": {"units": 1, "name": ")", name,
        R"("}, "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__",
             "config": {"keras_history": ["x", 0, 0]}}], "kwargs": {}}]})");
  }
  return KerasJson::parse(
      absl::StrCat(R"({"class_name": "Functional", "config": {"name": "f",
                       "input_layers": [["x", 0, 0]], "layers": [)",
                   layers, R"(], "output_layers": )", outputs, "}}"));
}

TEST(KerasModelReaderTest, OutputsAreInTheOrderOfTheirLeaves) {
  const auto layers_of = [](const std::string& outputs) {
    const absl::StatusOr<LayerPtr> model =
        LayersFromKeras(WithOutputs(outputs));
    EXPECT_OK(model.status());
    std::string names;
    if (!model.ok()) return names;
    for (const LayerOutput& output :
         dynamic_cast<const FunctionalLayer&>(**model).outputs()) {
      names += output.call()->layer->name();
    }
    return names;
  };
  const std::string a = R"(["a", 0, 0])";
  const std::string b = R"(["b", 0, 0])";
  const std::string c = R"(["c", 0, 0])";
  EXPECT_EQ(layers_of(a), "a");
  EXPECT_EQ(layers_of(absl::StrCat("[[", c, ",", a, "],", b, "]")), "cab");
  EXPECT_EQ(
      layers_of(absl::StrCat("{\"up\": ", a, ", \"down\": [", b, ",", c, "]}")),
      "bca");
  EXPECT_THAT(LayersFromKeras(WithOutputs("[[], 3]")),
              IsRefused("output_layers: names no layer"));
  EXPECT_THAT(LayersFromKeras(WithOutputs("{\"up\": 3}")),
              IsRefused("output_layers: expected [layer, call, output]"));
}

TEST(KerasModelReaderTest, ALayerInSeveralPlacesIsOne) {
  const auto wrapped = [](const char* name, int id) {
    return absl::StrCat(R"({"class_name": "TimeDistributed", "config": {
        "name": ")",
                        name, R"(", "layer": {"class_name": "Dense",
        "config": {"name": "d", "units": 4}, "shared_object_id": )",
                        id, "}}}");
  };
  KerasJson json = SequentialWith(absl::StrCat(
      wrapped("t", 17), ",", wrapped("u", 17), ",", wrapped("v", 18)));
  ASSERT_OK_AND_ASSIGN(const LayerPtr model, LayersFromKeras(json));
  ASSERT_EQ(model->layers().size(), 3u);
  const auto inner = [&](size_t index) {
    return model->layers()[index]->layers()[0].get();
  };
  EXPECT_EQ(inner(0), inner(1));
  EXPECT_NE(inner(0), inner(2));
}

// As Keras 3 writes it: the layer has no number at its first place.
TEST(KerasModelReaderTest, TheFirstPlaceOfASharedLayerHasNoNumber) {
  const auto wrapped = [](const char* name, const char* layer, const char* id) {
    return absl::StrCat(R"({"class_name": "TimeDistributed", "config": {
        "name": ")",
                        name, R"(", "layer": {"class_name": "Dense", "config": {
        "name": ")",
                        layer, R"(", "units": 4, "dtype": {"class_name":
        "DTypePolicy", "config": {"name": "float32"})",
                        id, "}}", id, "}}}");
  };
  ASSERT_OK_AND_ASSIGN(
      const LayerPtr model,
      LayersFromKeras(SequentialWith(
          absl::StrCat(wrapped("t", "d", ""), ",", wrapped("u", "e", ""), ",",
                       wrapped("v", "d", R"(, "shared_object_id": 7)"), ",",
                       wrapped("w", "d", R"(, "shared_object_id": 7)")))));
  ASSERT_EQ(model->layers().size(), 4u);
  const auto inner = [&](size_t index) {
    return model->layers()[index]->layers()[0].get();
  };
  EXPECT_NE(inner(0), inner(1));
  EXPECT_EQ(inner(0), inner(2));
  EXPECT_EQ(inner(0), inner(3));
}

TEST(KerasModelReaderTest, DeepJsonIsRefusedBeforeItIsParsed) {
  std::string model;
  for (int i = 0; i < 100000; ++i) {
    model += R"({"class_name": "Sequential", "config": {"layers": [)";
  }
  EXPECT_THAT(ParseKerasJson("a.keras: the config", model),
              IsRefused("a.keras: the config is nested 300000 levels deep"));
  EXPECT_THAT(ParseKerasJson("a.keras: the config", "{"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is no JSON")));
}

TEST(KerasModelReaderTest, LimitsTheDepthOfModels) {
  KerasJson model = DenseWith("");
  for (int i = 0; i < 40; ++i) model = SequentialWith(model.dump());
  EXPECT_THAT(LayersFromKeras(model), IsRefused("is inside more than 32"));
}

std::string Output(const std::string& layer) {
  return absl::StrCat(R"({"class_name": "__keras_tensor__", "config": {
                          "shape": [null, 5], "dtype": "float32",
                          "keras_history": [")",
                      layer, R"(", 0, 0]}})");
}

// Ids, an Embedding, a GRU that is called with `mask`, and the operation with
// which Keras computes the mask of the Embedding.
KerasJson MaskedModel(const std::string& mask_zero, const std::string& padding,
                      const std::string& mask) {
  return KerasJson::parse(absl::StrCat(
      R"({"module": "keras", "class_name": "Functional", "config": {
        "name": "f", "layers": [
        {"module": "keras.layers", "class_name": "InputLayer", "name": "ids",
         "config": {"batch_shape": [null, 5], "dtype": "int32",
                    "name": "ids"}, "inbound_nodes": []},
        {"module": "keras.layers", "class_name": "Embedding", "name": "e",
         "config": {"name": "e", "input_dim": 9, "output_dim": 2,
                    "mask_zero": )",
      mask_zero, R"(},
         "inbound_nodes": [{"args": [)",
      Output("ids"), R"(], "kwargs": {}}]},
        {"module": "keras.src.ops.numpy", "class_name": "NotEqual",
         "name": "not_equal", "config": {"name": "not_equal"},
         "inbound_nodes": [{"args": [)",
      Output("ids"), ", ", padding, R"(], "kwargs": {}}]},
        {"module": "keras.layers", "class_name": "GRU", "name": "g",
         "config": {"name": "g", "units": 3},
         "inbound_nodes": [{"args": [)",
      Output("e"), R"(], "kwargs": {"mask": )", mask, R"(}}]}],
        "input_layers": ["ids", 0, 0], "output_layers": ["g", 0, 0]}})"));
}

TEST(KerasModelReaderTest, LeavesMasksToTheLayers) {
  ASSERT_OK_AND_ASSIGN(
      const LayerPtr model,
      LayersFromKeras(MaskedModel("true", "0", Output("not_equal"))));
  std::vector<std::string> names;
  for (const LayerPtr& layer : model->layers()) names.push_back(layer->name());
  EXPECT_THAT(names, ElementsAre("ids", "e", "g"));
}

TEST(KerasModelReaderTest, RefusesMasksThatNoLayerMakes) {
  for (const KerasJson& model :
       {MaskedModel("false", "0", Output("not_equal")),
        MaskedModel("true", "3", Output("not_equal"))}) {
    EXPECT_THAT(
        LayersFromKeras(model),
        IsRefused("layer not_equal: Muster has no such operation as NotEqual"));
  }
}

// A model with one layer, which is called with these keywords.
KerasJson FunctionalOf(const std::string& layer, const std::string& keywords) {
  return KerasJson::parse(absl::StrCat(
      R"({"module": "keras", "class_name": "Functional", "config": {
        "name": "f", "layers": [
        {"module": "keras.layers", "class_name": "InputLayer", "name": "x",
         "config": {"batch_shape": [null, 4, 4, 1], "name": "x"},
         "inbound_nodes": []},
        {"module": "keras.layers", "class_name": ")",
      layer, R"(", "name": "h", "config": {"name": "h")",
      layer == "Dropout" ? R"(, "rate": 0.5)" : "", R"(},
         "inbound_nodes": [{"args": [)",
      Output("x"), R"(], "kwargs": {)", keywords, R"(}}]}],
        "input_layers": ["x", 0, 0], "output_layers": ["h", 0, 0]}})"));
}

std::optional<bool> TrainingOfCall(const KerasJson& model) {
  const absl::StatusOr<LayerPtr> read = LayersFromKeras(model);
  EXPECT_OK(read.status());
  const auto* const functional =
      dynamic_cast<const FunctionalLayer*>(read->get());
  return functional->outputs()[0].call()->training;
}

// Keras 3 replaces the argument when the model is called.
TEST(KerasModelReaderTest, CallsDoNotFixWhetherTheyTrain) {
  for (const char* const training : {"true", "false"}) {
    for (const char* const layer :
         {"Dropout", "RandomFlip", "BatchNormalization"}) {
      EXPECT_EQ(TrainingOfCall(FunctionalOf(
                    layer, absl::StrCat(R"("training": )", training))),
                std::nullopt);
    }
  }
}

// Keras 2 kept what the program gave, and replaced the default of call().
TEST(KerasModelReaderTest, CallsInFilesOfKeras2FixWhetherTheyTrain) {
  const auto training_of = [](const char* layer, const char* training) {
    KerasJson model = FunctionalOf(layer, "");
    model["config"]["layers"][1]["inbound_nodes"] = KerasJson::parse(
        absl::StrCat(R"([[["x", 0, 0, {"training": )", training, "}]]]"));
    return TrainingOfCall(model);
  };
  EXPECT_EQ(training_of("Dropout", "false"), std::nullopt);
  EXPECT_EQ(training_of("Dropout", "true"), true);
  EXPECT_EQ(training_of("BatchNormalization", "false"), false);
}

// Returns the shapes of the statistics that a Normalization adapts.
absl::StatusOr<Shape> MeanOf(const std::string& axis) {
  ASSIGN_OR_RETURN(
      const LayerPtr model,
      LayersFromKeras(SequentialWith(absl::StrCat(
          R"({"module": "keras.layers", "class_name": "Normalization",
              "config": {"name": "h", "axis": )",
          axis, "}}"))));
  auto& layer = dynamic_cast<NormalizationLayer&>(*model->layers()[0]);
  RETURN_IF_ERROR(layer.Observe(Tensor::Zeros(DType::kFloat32, {3, 4})));
  return layer.mean().shape();
}

TEST(KerasModelReaderTest, NormalizationKeepsItsAxis) {
  EXPECT_THAT(MeanOf("[-1]"), IsOkAndHolds(Shape{4}));
  EXPECT_THAT(MeanOf("1"), IsOkAndHolds(Shape{4}));
  // None.
  EXPECT_THAT(MeanOf("[]"), IsOkAndHolds(Shape{}));
  EXPECT_THAT(MeanOf("null"), IsOkAndHolds(Shape{}));
  EXPECT_THAT(MeanOf("[1, 2]").status(), IsRefused("axis must be the last"));
}

TEST(KerasModelReaderTest, NormalizationOverAnotherAxisIsRefused) {
  KerasJson json = SequentialWith(
      R"({"module": "keras.layers", "class_name": "Normalization",
          "config": {"name": "h", "axis": [1], "mean": [0.0, 1.0, 2.0],
                     "variance": [1.0, 1.0, 1.0]}})");
  json["config"]["layers"][0]["config"]["batch_shape"] =
      KerasJson::parse("[2, 3, 3]");
  ASSERT_OK_AND_ASSIGN(const LayerPtr model, LayersFromKeras(json));
  GraphBuilder builder(&BuiltinOps(), "test");
  builder.AddResult((*model)(
      builder.Parameter("x", {DType::kFloat32, {2, 3, 3}}), CallContext()));
  EXPECT_THAT(std::move(builder).Build().status(),
              IsRefused("axis 1 is not the last"));
}

TEST(KerasModelReaderTest, GeluIsAnOperationWithAnArgument) {
  const auto activation_of = [](const char* approximate) -> std::string {
    const absl::StatusOr<LayerPtr> model = LayersFromKeras(DenseWith(
        absl::StrCat(R"(, "activation": {
            "module": "keras.src.ops.nn", "class_name": "Gelu",
            "config": {"name": "gelu_1", "approximate": )",
                     approximate, R"(}, "registered_name": "Gelu"})")));
    EXPECT_OK(model.status());
    KerasJson config = KerasLayerConfig(*(*model)->layers()[0])["config"];
    return config["activation"].dump();
  };
  EXPECT_EQ(activation_of("false"), "\"gelu\"");
  EXPECT_THAT(activation_of("true"), HasSubstr("\"approximate\":true"));
}

}  // namespace
}  // namespace muster
