#include <string>
#include <type_traits>

#include "common/core/base/check.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/attention/multi_head_attention.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"
#include "tests/golden/layer_case.h"

namespace muster {
namespace {

using Json = nlohmann::json;

Activation ToActivation(const Json& config, const char* key,
                        Activation fallback) {
  if (!config.contains(key)) return fallback;
  const std::string name = config.at(key);
  for (int i = 0; i <= static_cast<int>(Activation::kExponential); ++i) {
    const Activation activation = static_cast<Activation>(i);
    if (ActivationName(activation) == name) return activation;
  }
  MUSTER_CHECK(false && "unknown activation");
  return fallback;
}

template <typename Options>
Options RecurrentOptions(const Json& config) {
  Options options;
  options.activation = ToActivation(config, "activation", options.activation);
  if constexpr (!std::is_same_v<Options, SimpleRNNOptions>) {
    options.recurrent_activation = ToActivation(config, "recurrent_activation",
                                                options.recurrent_activation);
  }
  options.use_bias = config.value("use_bias", options.use_bias);
  SequenceOptions& sequence = options.sequence;
  sequence.return_sequences = config.value("return_sequences", false);
  sequence.return_state = config.value("return_state", false);
  sequence.go_backwards = config.value("go_backwards", false);
  return options;
}

LayerPtr MakeAttention(const Json& config) {
  MultiHeadAttentionOptions options;
  options.use_bias = config.value("use_bias", options.use_bias);
  if (config.contains("value_dim")) options.value_dim = config["value_dim"];
  if (config.contains("output_shape")) {
    options.output_dim = config["output_shape"];
  }
  options.takes_attention_mask = config.value("mask", false);
  options.use_causal_mask = config.value("causal", false);
  options.return_attention_scores = config.value("scores", false);
  return MultiHeadAttention(2, 3, options);
}

LayerPtr MakeLayer(const Json& config) {
  const std::string name = config.at("class_name");
  if (name == "SimpleRNN") {
    return SimpleRNN(config.at("units"),
                     RecurrentOptions<SimpleRNNOptions>(config));
  }
  if (name == "LSTM") {
    return LSTM(config.at("units"), RecurrentOptions<LSTMOptions>(config));
  }
  if (name == "GRU") {
    GRUOptions options = RecurrentOptions<GRUOptions>(config);
    options.reset_after = config.value("reset_after", options.reset_after);
    return GRU(config.at("units"), options);
  }
  MUSTER_CHECK(name == "MultiHeadAttention");
  return MakeAttention(config);
}

TEST(SequenceLayersGoldenTest, MatchKerasWithTheirGradients) {
  for (const GoldenCase& golden : ReadGoldenCases("sequence_layers.json")) {
    SCOPED_TRACE(golden.name);
    ExpectLayerMatches(golden, MakeLayer(golden.config), 2e-5);
  }
}

// The extents of batch and time are unknown while tracing.
TEST(SequenceLayersGoldenTest, AttentionOverUnknownTimeMatchesKeras) {
  int case_count = 0;
  for (const GoldenCase& golden : ReadGoldenCases("sequence_layers.json")) {
    const std::string name = golden.config.at("class_name");
    if (name != "MultiHeadAttention" || golden.config.value("causal", false)) {
      continue;
    }
    SCOPED_TRACE(golden.name);
    ExpectLayerMatches(golden, MakeLayer(golden.config), 2e-5,
                       /*unknown_axis_count=*/2);
    ++case_count;
  }
  EXPECT_GT(case_count, 3);
}

}  // namespace
}  // namespace muster
