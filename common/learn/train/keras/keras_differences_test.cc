#include "common/learn/train/keras/keras_differences.h"

#include <string>

#include "common/learn/train/keras/keras_object.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// The config of a layer after it is updated.
KerasJson Updated(KerasVersion version, const std::string& object) {
  KerasJson json = KerasJson::parse(object);
  UpdateKerasConfig(version, &json);
  return json;
}

TEST(KerasDifferencesTest, ParsesVersions) {
  const KerasVersion otherwise = {9, 9};
  EXPECT_EQ(ParseKerasVersion("2.15.0", otherwise), (KerasVersion{2, 15}));
  EXPECT_EQ(ParseKerasVersion("2.1.6-tf", otherwise), (KerasVersion{2, 1}));
  EXPECT_EQ(ParseKerasVersion("3.4", otherwise), (KerasVersion{3, 4}));
  for (const char* const text : {"", "3", "a.b.c", "2.x"}) {
    EXPECT_EQ(ParseKerasVersion(text, otherwise), otherwise) << text;
  }
}

TEST(KerasDifferencesTest, VersionsAreOrdered) {
  EXPECT_TRUE((KerasVersion{2, 15}) < (KerasVersion{3, 0}));
  EXPECT_TRUE((KerasVersion{3, 0}) < (KerasVersion{3, 10}));
  EXPECT_FALSE((KerasVersion{3, 0}) < (KerasVersion{3, 0}));
}

TEST(KerasDifferencesTest, ValuesMeanWhatTheVersionMeant) {
  const std::string dense =
      R"({"class_name": "Dense", "config": {"activation": "hard_sigmoid"}})";
  EXPECT_EQ(Updated({2, 15}, dense)["config"]["activation"],
            "hard_sigmoid_keras2");
  EXPECT_EQ(Updated({3, 0}, dense)["config"]["activation"], "hard_sigmoid");
  EXPECT_EQ(Updated({2, 13}, R"({"class_name": "LSTM", "config": {
                "recurrent_activation": {"module": "builtins",
                    "class_name": "function", "config": "hard_sigmoid"}}})")
                ["config"]["recurrent_activation"],
            "hard_sigmoid_keras2");
}

TEST(KerasDifferencesTest, ArgumentsAreRenamedAndDropped) {
  const std::string slope =
      R"({"class_name": "LeakyReLU", "config": {"name": "l", "alpha": 0.25}})";
  EXPECT_EQ(Updated({2, 15}, slope)["config"],
            KerasJson::parse(R"({"name": "l", "negative_slope": 0.25})"));
  EXPECT_EQ(Updated({3, 1}, slope), KerasJson::parse(slope));
  EXPECT_EQ(Updated({2, 12}, R"({"class_name": "SeparableConv2D", "config":
                {"kernel_initializer": "zeros", "filters": 2}})")["config"],
            KerasJson::parse(R"({"filters": 2})"));
}

TEST(KerasDifferencesTest, AbsentArgumentsHadOtherDefaults) {
  const std::string gru = R"({"class_name": "GRU", "config": {"units": 2}})";
  EXPECT_EQ(Updated({2, 1}, gru)["config"]["reset_after"], false);
  EXPECT_FALSE(Updated({2, 2}, gru)["config"].contains("reset_after"));
}

TEST(KerasDifferencesTest, ClassesHaveOneName) {
  const KerasJson relu = Updated({2, 9}, R"({"class_name": "ThresholdedReLU",
                                             "config": {"theta": 0.5}})");
  EXPECT_EQ(relu["class_name"], "ReLU");
  EXPECT_EQ(relu["config"]["threshold"], 0.5);
  const KerasJson batch =
      Updated({2, 9}, R"({"class_name": "SyncBatchNormalization",
                          "config": {}})");
  EXPECT_EQ(batch["class_name"], "BatchNormalization");
  EXPECT_EQ(batch["config"]["synchronized"], true);
}

TEST(KerasDifferencesTest, ListsOfLayersAreSequential) {
  const KerasJson model = Updated({2, 1}, R"({"class_name": "Sequential",
      "config": [{"class_name": "Dense", "config": {"name": "d"}}]})");
  EXPECT_EQ(model["config"]["layers"][0]["config"]["name"], "d");
}

// Objects at any depth, and of every kind.
TEST(KerasDifferencesTest, ObjectsInsideOthersAreUpdated) {
  const KerasJson model = Updated({2, 14}, R"({"class_name": "Functional",
      "config": {"layers": [{"class_name": "TimeDistributed", "config": {
        "layer": {"class_name": "Dense",
                  "config": {"activation": "hard_sigmoid"}}}}]},
      "compile_config": {
        "optimizer": {"class_name": "Adam", "config": {
            "jit_compile": true, "is_legacy_optimizer": false, "beta_1": 0.5}},
        "loss": [{"class_name": "Huber", "config": {
            "fn": "huber", "reduction": "auto", "delta": 0.5}}]}})");
  EXPECT_EQ(
      model["config"]["layers"][0]["config"]["layer"]["config"]["activation"],
      "hard_sigmoid_keras2");
  EXPECT_EQ(model["compile_config"]["optimizer"]["config"],
            KerasJson::parse(R"({"beta_1": 0.5})"));
  EXPECT_EQ(model["compile_config"]["loss"][0]["config"],
            KerasJson::parse(
                R"({"reduction": "sum_over_batch_size", "delta": 0.5})"));
}

}  // namespace
}  // namespace muster
