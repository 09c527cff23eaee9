#include "common/learn/train/keras/keras_differences.h"

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
