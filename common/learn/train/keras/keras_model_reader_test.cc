#include "common/learn/train/keras/keras_model_reader.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_matchers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/keras/keras_object.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

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

TEST(KerasModelReaderTest, LimitsTheDepthOfModels) {
  KerasJson model = DenseWith("");
  for (int i = 0; i < 40; ++i) model = SequentialWith(model.dump());
  EXPECT_THAT(LayersFromKeras(model), IsRefused("is inside more than 32"));
}

}  // namespace
}  // namespace muster
