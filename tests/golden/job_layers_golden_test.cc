#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/train/job/job_model.h"
#include "common/learn/train/job/testing/parse_job_message.h"
#include "common/learn/train/keras/keras_layer_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/job_model.pb.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/layer_case.h"

namespace muster {
namespace {

using nlohmann::json;

absl::StatusOr<LayerPtr> Build(const std::string& text) {
  proto::JobLayer job;
  if (!ParseJobMessage(text, &job)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot parse ", text));
  }
  return BuildJobLayer(job);
}

// Returns true for arguments that Keras accepts but does not serialize.
bool IsUnwritten(const std::string& kind, const std::string& key) {
  return (kind == "SimpleRNN" && key == "seed") ||
         (kind == "HashedCrossing" && key == "trainable") ||
         (absl::StartsWith(kind, "SpatialDropout") && key == "trainable");
}

// Returns `value`, the member `key` of a serialized layer. If it is the config,
// removes the arguments that Keras does not serialize.
json WithoutUnwritten(const std::string& key, json value, const json& layer) {
  if (key != "config" || !value.is_object()) return value;
  const std::string kind = layer.value("class_name", "");
  for (const char* const name : {"seed", "trainable"}) {
    if (IsUnwritten(kind, name)) value.erase(name);
  }
  return value;
}

// Returns true if `actual` is contained in `expected`, recursively for objects
// and lists of objects.
bool IsWithin(const json& actual, const json& expected) {
  if (actual.is_array() && expected.is_array() && !actual.empty() &&
      actual.front().is_object()) {
    return std::equal(actual.begin(), actual.end(), expected.begin(),
                      expected.end(), IsWithin);
  }
  if (!actual.is_object()) {
    // Muster may write one axis as a list.
    const bool is_list = actual.is_array() && expected.is_number_integer();
    return is_list ? actual == json(actual.size(), expected)
                   : actual == expected;
  }
  if (!expected.is_object()) return false;
  for (const auto& [key, value] : actual.items()) {
    if (!expected.contains(key) ||
        !IsWithin(WithoutUnwritten(key, value, actual), expected[key])) {
      return false;
    }
  }
  return true;
}

// Returns true for Keras arguments that Muster's layers do not have.
bool IsWithoutChoice(const std::string& kind, const std::string& key) {
  static const auto& kKeys = *new absl::flat_hash_set<std::string>({
      "activity_regularizer",
      "antialias",
      "attention_axes",
      "data_format",
      "encoding",
      "oov_method",
      "quantization_config",
      "ragged",
      "rms_scaling",
      "sliding_window",
      "sparse",
      "unroll",
      "use_gate",
      "vocabulary_dtype",
      "vocabulary_size",
  });
  return kKeys.contains(key) || absl::StartsWith(key, "renorm") ||
         (kind == "AlphaDropout" && key == "noise_shape") ||
         (kind == "BatchNormalization" && key == "axis") ||
         (kind == "Resizing" && key == "fill_mode");
}

TEST(JobLayersGoldenTest, ConfigsMatchKeras) {
  for (const GoldenCase& golden : ReadGoldenCases("job_layers.json")) {
    const std::string text = golden.config.at("job");
    SCOPED_TRACE(text);
    ASSERT_OK_AND_ASSIGN(const LayerPtr layer, Build(text));
    layer->SetPath("layer");
    const json actual = KerasLayerConfig(*layer);
    const json& expected = golden.config.at("keras");
    const std::string kind = expected.at("class_name");
    EXPECT_EQ(actual.at("class_name"), kind);
    EXPECT_EQ(actual.at("module"), expected.at("module"));
    for (const auto& [key, value] : actual.at("config").items()) {
      if (IsUnwritten(kind, key)) continue;
      ASSERT_TRUE(expected.at("config").contains(key)) << key;
      const json& wanted = expected.at("config").at(key);
      // A dtype policy may be written as its name.
      if (key == "dtype" && value == wanted.at("config").at("name")) continue;
      EXPECT_TRUE(IsWithin(value, expected.at("config").at(key)))
          << key << ": " << value << ", in Keras "
          << expected.at("config").at(key);
    }
    for (const auto& [key, value] : expected.at("config").items()) {
      EXPECT_TRUE(actual.at("config").contains(key) ||
                  IsWithoutChoice(kind, key))
          << key << " is missing";
    }
  }
}

TEST(JobLayersGoldenTest, CoversEveryKindOfLayer) {
  absl::flat_hash_set<std::string> names;
  for (const GoldenCase& golden : ReadGoldenCases("job_layers.json")) {
    names.insert(golden.name);
  }
  for (const LayerKind& kind : kLayerKinds) {
    EXPECT_TRUE(names.contains(kind.name)) << kind.name;
  }
}

// Batch and time are unknown while tracing.
TEST(JobLayersGoldenTest, AttentionOverUnknownTimeMatchesKeras) {
  int case_count = 0;
  for (const GoldenCase& golden : ReadGoldenCases("job_layers.json")) {
    const std::string text = golden.config.at("job");
    if (golden.inputs.empty() || !absl::StrContains(golden.name, "attention") ||
        absl::StrContains(text, "use_causal_mask")) {
      continue;
    }
    SCOPED_TRACE(text);
    ASSERT_OK_AND_ASSIGN(const LayerPtr layer, Build(text));
    ExpectLayerMatches(golden, layer, 2e-5, /*unknown_axis_count=*/2);
    ++case_count;
  }
  EXPECT_GT(case_count, 3);
}

TEST(JobLayersGoldenTest, OutputsAndGradientsMatchKeras) {
  for (const GoldenCase& golden : ReadGoldenCases("job_layers.json")) {
    if (golden.inputs.empty()) continue;
    SCOPED_TRACE(golden.name);
    ASSERT_OK_AND_ASSIGN(const LayerPtr layer, Build(golden.config.at("job")));
    ExpectLayerMatches(golden, layer, 2e-5);
  }
}

}  // namespace
}  // namespace muster
