#include "common/learn/train/keras/keras_operations.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr char kTensor[] =
    R"({"class_name": "__keras_tensor__", "config": {
        "keras_history": ["x", 0, 0]}})";

// The entry of an operation that is called once.
KerasJson Entry(const std::string& operation, const std::string& arguments,
                const std::string& config = "") {
  return KerasJson::parse(
      absl::StrCat(R"({"module": "keras.src.ops.numpy", "class_name": ")",
                   operation, R"(", "config": {"name": "o")", config, R"(},
          "inbound_nodes": [{"args": [)",
                   arguments, R"(], "kwargs": {}}]})"));
}

std::string Of(const KerasJson& entry) {
  const absl::StatusOr<KerasJson> layer = LayerOfOperation("layer o", entry);
  if (!layer.ok()) return std::string(layer.status().message());
  EXPECT_EQ((*layer)["module"], "keras.layers");
  KerasJson config = (*layer)["config"];
  EXPECT_EQ(config["name"], "o");
  config.erase("name");
  return absl::StrCat((*layer)["class_name"].get<std::string>(), config.dump());
}

TEST(KerasOperationsTest, OperationsOnTensorsAreLayers) {
  const std::string two = absl::StrCat(kTensor, ", ", kTensor);
  EXPECT_EQ(Of(Entry("Add", two)), "Add{}");
  EXPECT_EQ(
      Of(Entry("Concatenate", absl::StrCat("[", two, "]"), R"(, "axis": -1)")),
      R"(Concatenate{"axis":-1})");
  EXPECT_EQ(Of(Entry("Relu6", kTensor)), R"(Activation{"activation":"relu6"})");
  EXPECT_EQ(Of(Entry("Negative", kTensor)),
            R"(Rescaling{"scale":-1.0,"offset":0.0})");
}

TEST(KerasOperationsTest, OperationsOnANumberAreRescalings) {
  const auto with = [](const std::string& operation, bool is_first) {
    return Of(Entry(operation, is_first ? absl::StrCat("4, ", kTensor)
                                        : absl::StrCat(kTensor, ", 4")));
  };
  EXPECT_EQ(with("Add", true), R"(Rescaling{"scale":1.0,"offset":4.0})");
  EXPECT_EQ(with("Multiply", false), R"(Rescaling{"scale":4.0,"offset":0.0})");
  EXPECT_EQ(with("Subtract", true), R"(Rescaling{"scale":-1.0,"offset":4.0})");
  EXPECT_EQ(with("Subtract", false), R"(Rescaling{"scale":1.0,"offset":-4.0})");
  EXPECT_EQ(with("TrueDivide", false),
            R"(Rescaling{"scale":0.25,"offset":0.0})");
  EXPECT_THAT(with("TrueDivide", true),
              HasSubstr("layer o: Muster has no such operation as TrueDivide"));
}

// Layers of these names compute something else.
TEST(KerasOperationsTest, OthersAreRefusedByName) {
  for (const char* const operation : {"Average", "Dot", "Power", "Sum"}) {
    EXPECT_THAT(Of(Entry(operation, absl::StrCat(kTensor, ", ", kTensor))),
                HasSubstr(absl::StrCat("no such operation as ", operation)));
  }
}

TEST(KerasOperationsTest, LayersStayAsTheyAre) {
  KerasJson layer = Entry("Average", kTensor);
  layer["module"] = "keras.layers";
  ASSERT_OK_AND_ASSIGN(const KerasJson same, LayerOfOperation("a", layer));
  EXPECT_EQ(same, layer);
}

}  // namespace
}  // namespace muster
