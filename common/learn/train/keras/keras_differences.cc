#include "common/learn/train/keras/keras_differences.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/learn/train/keras/keras_object.h"

namespace muster {
namespace {

// A tensor of Keras 2, [layer, call, output], as Keras 3 writes it. Others stay
// as they are.
KerasJson AsTensor(const KerasJson& json) {
  if (!IsKerasHistory(json)) return json;
  return {{"class_name", "__keras_tensor__"},
          {"config", {{"keras_history", json}}}};
}

}  // namespace

bool IsKerasHistory(const KerasJson& json) {
  return json.is_array() && json.size() >= 3 && json[0].is_string() &&
         json[1].is_number_unsigned() && json[2].is_number_unsigned();
}

KerasJson NodeFromLegacy(const KerasJson& entries) {
  KerasJson args = KerasJson::array();
  KerasJson keywords = KerasJson::object();
  for (const KerasJson& entry : entries) {
    args.push_back(AsTensor(entry));
    if (!IsKerasHistory(entry) || entry.size() < 4) continue;
    for (const auto& [name, value] : entry[3].items()) {
      KerasJson named = AsTensor(value);
      // A list of them: the states of a recurrent layer.
      if (named.is_array()) {
        for (KerasJson& inner : named) inner = AsTensor(inner);
      }
      keywords[name] = std::move(named);
    }
  }
  return {{"args", std::move(args)}, {"kwargs", std::move(keywords)}};
}

size_t FirstCallOf(const KerasJson& entry) {
  const KerasJson& nodes = FindMember(entry, "inbound_nodes");
  const KerasJson& layers = FindMember(FindMember(entry, "config"), "layers");
  const bool is_legacy =
      nodes.is_array() && !nodes.empty() && nodes.front().is_array();
  const bool begins_with_input =
      layers.is_array() && !layers.empty() &&
      TextMember(layers.front(), "class_name") == "InputLayer";
  return is_legacy && begins_with_input ? 1 : 0;
}

namespace {

constexpr absl::string_view kHardSigmoidKeras2 = "hard_sigmoid_keras2";
constexpr absl::string_view kGelu = "gelu";
constexpr absl::string_view kGeluApproximate = "gelu_approximate";

// The module of the operation, which Keras does not export.
constexpr char kOperations[] = "keras.src.ops.nn";

// Keras 3 has relu6(x + 3) / 6.
constexpr double kScale = 1.2;

KerasJson LayerJson(const char* class_name, KerasJson config) {
  return {{"module", "keras.layers"},
          {"class_name", class_name},
          {"config", std::move(config)},
          {"registered_name", nullptr}};
}

KerasJson HardSigmoidKeras2Json() {
  KerasJson layers = KerasJson::array();
  layers.push_back(LayerJson(
      "Rescaling", {{"name", "scale"}, {"scale", kScale}, {"offset", 0.0}}));
  layers.push_back(LayerJson("Activation", {{"name", "hard_sigmoid"},
                                            {"activation", "hard_sigmoid"}}));
  return {{"module", "keras"},
          {"class_name", "Sequential"},
          {"config",
           {{"name", std::string(kHardSigmoidKeras2)},
            {"layers", std::move(layers)}}},
          {"registered_name", nullptr}};
}

bool IsHardSigmoidKeras2(const KerasJson& activation) {
  if (TextMember(activation, "class_name") != "Sequential") return false;
  const KerasJson& layers =
      FindMember(FindMember(activation, "config"), "layers");
  if (!layers.is_array()) return false;
  std::vector<const KerasJson*> computing;
  for (const KerasJson& layer : layers) {
    if (TextMember(layer, "class_name") != "InputLayer") {
      computing.push_back(&layer);
    }
  }
  if (computing.size() != 2) return false;
  const KerasJson& scaling = FindMember(*computing[0], "config");
  return TextMember(*computing[0], "class_name") == "Rescaling" &&
         FindMember(scaling, "scale") == kScale &&
         FindMember(scaling, "offset") == 0 &&
         TextMember(*computing[1], "class_name") == "Activation" &&
         TextMember(FindMember(*computing[1], "config"), "activation") ==
             "hard_sigmoid";
}

std::string GeluOf(const KerasJson& activation) {
  if (TextMember(activation, "class_name") != "Gelu") return "";
  const KerasJson& config = FindMember(activation, "config");
  return std::string(
      FindMember(config, "approximate") == false ? kGelu : kGeluApproximate);
}

}  // namespace

std::optional<KerasJson> UnnamedActivationJson(absl::string_view name) {
  if (name == kHardSigmoidKeras2) return HardSigmoidKeras2Json();
  if (name != kGeluApproximate) return std::nullopt;
  return KerasJson{{"module", kOperations},
                   {"class_name", "Gelu"},
                   {"config", {{"approximate", true}}},
                   {"registered_name", "Gelu"}};
}

std::string UnnamedActivationOf(const KerasJson& activation) {
  if (IsHardSigmoidKeras2(activation)) return std::string(kHardSigmoidKeras2);
  return GeluOf(activation);
}

namespace {

constexpr KerasVersion kKeras3 = {3, 0};

enum class Change {
  kDropped,   // It changes nothing that Muster computes.
  kRenamed,   // To `now`.
  kReplaced,  // The value `before` is called `now`. Both are JSON.
  kDefault,   // Where it is absent, it was `now`, in JSON.
};

struct ArgumentDifference {
  // The first version that Muster agrees with.
  KerasVersion until;
  // Of all classes whose names begin with it.
  absl::string_view classes;
  absl::string_view argument;
  Change change;
  absl::string_view before;
  absl::string_view now;
};

constexpr ArgumentDifference kArgumentDifferences[] = {
    // clip(0.2 x + 0.5, 0, 1), which Keras 3 replaced by relu6(x + 3) / 6.
    {kKeras3, "", "activation", Change::kReplaced, "\"hard_sigmoid\"",
     "\"hard_sigmoid_keras2\""},
    {kKeras3, "", "recurrent_activation", Change::kReplaced, "\"hard_sigmoid\"",
     "\"hard_sigmoid_keras2\""},
    {kKeras3, "ConvLSTM", "recurrent_activation", Change::kDefault, "",
     "\"hard_sigmoid_keras2\""},
    {kKeras3, "LeakyReLU", "alpha", Change::kRenamed, "", "negative_slope"},
    {kKeras3, "ThresholdedReLU", "theta", Change::kRenamed, "", "threshold"},
    {kKeras3, "SyncBatchNormalization", "synchronized", Change::kDefault, "",
     "true"},
    // Before 2.2 there was no other GRU.
    {{2, 2}, "GRU", "reset_after", Change::kDefault, "", "false"},
    {kKeras3, "Embedding", "input_length", Change::kDropped, "", ""},
    {kKeras3, "SeparableConv", "kernel_initializer", Change::kDropped, "", ""},
    {kKeras3, "SeparableConv", "kernel_regularizer", Change::kDropped, "", ""},
    {kKeras3, "SeparableConv", "kernel_constraint", Change::kDropped, "", ""},
    {kKeras3, "DepthwiseConv", "kernel_initializer", Change::kDropped, "", ""},
    {kKeras3, "DepthwiseConv", "kernel_regularizer", Change::kDropped, "", ""},
    {kKeras3, "DepthwiseConv", "kernel_constraint", Change::kDropped, "", ""},
    {kKeras3, "SpatialDropout", "noise_shape", Change::kDropped, "", ""},
    {kKeras3, "Random", "rng_type", Change::kDropped, "", ""},
    {{3, 6}, "RandomRotation", "value_range", Change::kDropped, "", ""},
    // Of Attention before 2.11, which was given the argument of the call.
    {kKeras3, "Attention", "causal", Change::kReplaced, "false", "null"},
    {kKeras3, "AdditiveAttention", "causal", Change::kReplaced, "false",
     "null"},
    // Of losses: the function, which follows from the class.
    {kKeras3, "", "fn", Change::kDropped, "", ""},
    {kKeras3, "", "reduction", Change::kReplaced, "\"auto\"",
     "\"sum_over_batch_size\""},
    // Of optimizers.
    {kKeras3, "", "jit_compile", Change::kDropped, "", ""},
    {kKeras3, "", "is_legacy_optimizer", Change::kDropped, "", ""},
    {kKeras3, "", "decay", Change::kReplaced, "0.0", "null"},
};

struct ClassDifference {
  KerasVersion until;
  absl::string_view before;
  absl::string_view now;
};

constexpr ClassDifference kClassDifferences[] = {
    {kKeras3, "ThresholdedReLU", "ReLU"},
    // As classes of TensorFlow 1 are called in the files of Keras 2.
    {kKeras3, "BatchNormalizationV1", "BatchNormalization"},
    {kKeras3, "BatchNormalizationV2", "BatchNormalization"},
    {kKeras3, "SyncBatchNormalization", "BatchNormalization"},
    {kKeras3, "LSTMV1", "LSTM"},
    {kKeras3, "LSTMV2", "LSTM"},
    {kKeras3, "GRUV1", "GRU"},
    {kKeras3, "GRUV2", "GRU"},
};

KerasJson Parsed(absl::string_view json) {
  return KerasJson::parse(json.begin(), json.end());
}

// A function is written as its name, or as an object that has it as config.
bool IsValue(const KerasJson& given, const KerasJson& value) {
  if (given == value) return true;
  return TextMember(given, "class_name") == "function" &&
         FindMember(given, "config") == value;
}

void Apply(const ArgumentDifference& difference, KerasJson* config) {
  const std::string argument(difference.argument);
  const auto found = config->find(argument);
  const bool is_present = found != config->end();
  switch (difference.change) {
    case Change::kDropped:
      if (is_present) config->erase(argument);
      return;
    case Change::kRenamed:
      if (is_present) {
        KerasJson value = std::move(*found);
        config->erase(argument);
        (*config)[std::string(difference.now)] = std::move(value);
      }
      return;
    case Change::kReplaced:
      if (is_present && IsValue(*found, Parsed(difference.before))) {
        *found = Parsed(difference.now);
      }
      return;
    case Change::kDefault:
      if (!is_present) (*config)[argument] = Parsed(difference.now);
      return;
  }
}

// Updates what an object says of itself, not those inside it.
void UpdateObject(KerasVersion version, KerasJson* object) {
  const std::string class_name = TextMember(*object, "class_name");
  if (class_name.empty() || !object->contains("config")) return;
  KerasJson& config = (*object)["config"];
  if (class_name == "Sequential" && config.is_array()) {
    config = KerasJson{{"name", "sequential"}, {"layers", std::move(config)}};
  }
  if (!config.is_object()) return;
  for (const ArgumentDifference& difference : kArgumentDifferences) {
    if (version < difference.until &&
        absl::StartsWith(class_name, difference.classes)) {
      Apply(difference, &config);
    }
  }
  for (const ClassDifference& difference : kClassDifferences) {
    if (version < difference.until && class_name == difference.before) {
      (*object)["class_name"] = std::string(difference.now);
    }
  }
}

}  // namespace

KerasVersion ParseKerasVersion(absl::string_view text, KerasVersion otherwise) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  KerasVersion version;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &version.major) ||
      !absl::SimpleAtoi(parts[1], &version.minor)) {
    return otherwise;
  }
  return version;
}

void UpdateKerasConfig(KerasVersion version, KerasJson* model) {
  // An object is updated before those inside it: references to the members of
  // an object end when it changes.
  std::vector<KerasJson*> pending = {model};
  while (!pending.empty()) {
    KerasJson& json = *pending.back();
    pending.pop_back();
    if (json.is_object()) UpdateObject(version, &json);
    for (KerasJson& inner : json) {
      if (inner.is_structured()) pending.push_back(&inner);
    }
  }
}

}  // namespace muster
