#include "common/learn/train/keras/keras_operations.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/learn/train/keras/keras_node.h"

namespace muster {
namespace {

// Operations on tensors that a layer of the same name computes.
constexpr absl::string_view kOfLayers[] = {"Add",     "Concatenate", "Maximum",
                                           "Minimum", "Multiply",    "Softmax",
                                           "Subtract"};

struct NamedActivation {
  absl::string_view operation;
  absl::string_view activation;
};
constexpr NamedActivation kActivations[] = {{"HardSigmoid", "hard_sigmoid"},
                                            {"HardSilu", "hard_silu"},
                                            {"HardTanh", "hard_tanh"},
                                            {"LogSigmoid", "log_sigmoid"},
                                            {"Relu", "relu"},
                                            {"Relu6", "relu6"},
                                            {"Selu", "selu"},
                                            {"Sigmoid", "sigmoid"},
                                            {"Silu", "silu"},
                                            {"Softplus", "softplus"},
                                            {"Softsign", "softsign"},
                                            {"Tanh", "tanh"}};

KerasJson LayerEntry(const KerasJson& entry, absl::string_view class_name,
                     KerasJson config) {
  KerasJson layer = entry;
  layer["module"] = "keras.layers";
  layer["class_name"] = std::string(class_name);
  layer["config"].update(config);
  return layer;
}

KerasJson RescalingEntry(const KerasJson& entry, double scale, double offset) {
  return LayerEntry(entry, "Rescaling", {{"scale", scale}, {"offset", offset}});
}

// Returns the entry for an operation on a tensor and a number; unset if Muster
// has no such operation.
std::optional<KerasJson> OfTensorAndNumber(const KerasJson& entry,
                                           absl::string_view operation,
                                           bool is_first, double number) {
  if (operation == "Add") return RescalingEntry(entry, 1, number);
  if (operation == "Multiply") return RescalingEntry(entry, number, 0);
  if (operation == "Subtract") {
    return is_first ? RescalingEntry(entry, -1, number)
                    : RescalingEntry(entry, 1, -number);
  }
  const bool divides = operation == "TrueDivide" || operation == "Divide";
  if (divides && !is_first && number != 0) {
    return RescalingEntry(entry, 1 / number, 0);
  }
  return std::nullopt;
}

// The same for an operation on tensors alone.
std::optional<KerasJson> OfTensors(const KerasJson& entry,
                                   absl::string_view operation) {
  if (std::find(std::begin(kOfLayers), std::end(kOfLayers), operation) !=
      std::end(kOfLayers)) {
    return LayerEntry(entry, operation, KerasJson::object());
  }
  if (operation == "Negative") return RescalingEntry(entry, -1, 0);
  for (const NamedActivation& named : kActivations) {
    if (operation == named.operation) {
      return LayerEntry(entry, "Activation",
                        {{"activation", std::string(named.activation)}});
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<KerasJson> LayerOfOperation(absl::string_view place,
                                           const KerasJson& entry) {
  if (!absl::StartsWith(TextMember(entry, "module"), "keras.src.ops")) {
    return entry;
  }
  const std::string operation = TextMember(entry, "class_name");
  const KerasJson& nodes = FindMember(entry, "inbound_nodes");
  std::optional<KerasJson> layer = OfTensors(entry, operation);
  bool has_number = false;
  for (const KerasJson& node : nodes) {
    const KerasJson& args = FindMember(node, "args");
    if (!args.is_array() || args.size() != 2) continue;
    const bool is_first = args[0].is_number();
    if (!is_first && !args[1].is_number()) continue;
    has_number = true;
    layer = OfTensorAndNumber(entry, operation, is_first,
                              args[is_first ? 0 : 1].get<double>());
  }
  if (layer.has_value() && !(has_number && nodes.size() > 1)) return *layer;
  return BadKerasStructure(
      place, absl::StrCat("Muster has no such operation as ", operation));
}

}  // namespace muster
