#include "common/learn/train/keras/keras_node.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/learn/train/keras/keras_legacy_config.h"
#include "common/learn/train/keras/keras_object.h"

namespace muster {
namespace {

KerasHistory HistoryFrom(const KerasJson& json) {
  return {json[0].get<std::string>(), json[1].get<size_t>(),
          json[2].get<size_t>()};
}

// Appends the symbolic tensors in `json`, at any depth of lists.
void CollectTensors(const KerasJson& json, std::vector<KerasHistory>* inputs) {
  if (json.is_array()) {
    for (const KerasJson& entry : json) CollectTensors(entry, inputs);
    return;
  }
  const KerasJson& config = FindMember(json, "config");
  const KerasJson& history = FindMember(config, "keras_history");
  if (IsKerasHistory(history)) inputs->push_back(HistoryFrom(history));
}

// Inputs that a program may pass by name, in the order in which Muster's layers
// take them.
constexpr absl::string_view kNamedInputs[] = {"value", "key", "initial_state",
                                              "mask", "attention_mask"};

absl::Status AddKeywords(absl::string_view place, const KerasJson& keywords,
                         KerasNode* node) {
  for (const absl::string_view name : kNamedInputs) {
    const size_t count = node->inputs.size();
    CollectTensors(FindMember(keywords, name), &node->inputs);
    if (node->inputs.size() > count && name == "attention_mask") {
      node->arguments["takes_attention_mask"] = true;
    }
  }
  for (const auto& [name, value] : keywords.items()) {
    if (value.is_null()) continue;
    if (name == "training" && value.is_boolean()) {
      node->training = value.get<bool>();
      continue;
    }
    if (name == "reverse" && value.is_boolean()) {
      node->is_reversed = value.get<bool>();
      continue;
    }
    std::vector<KerasHistory> inputs;
    CollectTensors(value, &inputs);
    if (inputs.empty()) {
      node->arguments[name] = value;
    } else if (std::count(std::begin(kNamedInputs), std::end(kNamedInputs),
                          name) == 0) {
      return BadKerasStructure(
          place, absl::StrCat("is called with a tensor as ", name,
                              ", which Muster's layer does not take"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BadKerasStructure(absl::string_view place,
                               absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", what));
}

absl::StatusOr<std::vector<KerasHistory>> KerasHistoriesFrom(
    absl::string_view place, const KerasJson& json) {
  if (IsKerasHistory(json)) return std::vector<KerasHistory>{HistoryFrom(json)};
  std::vector<std::pair<std::string, KerasJson>> entries;
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      entries.emplace_back(key, value);
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
  } else if (json.is_array()) {
    for (const KerasJson& value : json) entries.emplace_back("", value);
  }
  std::vector<KerasHistory> histories;
  for (const auto& [key, value] : entries) {
    if (!IsKerasHistory(value)) {
      return BadKerasStructure(place, "expected [layer, call, output]");
    }
    histories.push_back(HistoryFrom(value));
  }
  if (histories.empty()) return BadKerasStructure(place, "names no layer");
  return histories;
}

absl::StatusOr<KerasNode> KerasNodeFrom(absl::string_view place,
                                        const KerasJson& json) {
  if (json.is_array()) return KerasNodeFrom(place, NodeFromLegacy(json));
  KerasNode node;
  const KerasJson& args = FindMember(json, "args");
  if (!args.is_array()) {
    return BadKerasStructure(place, "inbound_nodes are not those of Keras 3");
  }
  CollectTensors(args, &node.inputs);
  RETURN_IF_ERROR(AddKeywords(place, FindMember(json, "kwargs"), &node));
  if (node.inputs.empty())
    return BadKerasStructure(place, "is called on nothing");
  return node;
}

absl::StatusOr<KerasJson> WithoutNumberOperand(absl::string_view place,
                                               const KerasJson& entry) {
  const KerasJson& nodes = FindMember(entry, "inbound_nodes");
  if (!absl::StartsWith(TextMember(entry, "module"), "keras.src.ops") ||
      nodes.size() != 1) {
    return entry;
  }
  const KerasJson& args = FindMember(nodes.front(), "args");
  if (!args.is_array() || args.size() != 2) return entry;
  const bool is_first = args[0].is_number();
  if (!is_first && !args[1].is_number()) return entry;
  const double number = args[is_first ? 0 : 1].get<double>();
  const std::string operation = TextMember(entry, "class_name");
  double scale = 1;
  double offset = 0;
  if (operation == "Add") {
    offset = number;
  } else if (operation == "Subtract") {
    scale = is_first ? -1 : 1;
    offset = is_first ? number : -number;
  } else if (operation == "Multiply") {
    scale = number;
  } else if ((operation == "TrueDivide" || operation == "Divide") &&
             !is_first && number != 0) {
    scale = 1 / number;
  } else {
    return BadKerasStructure(place, "Muster has no such operation on a number");
  }
  KerasJson rescaling = entry;
  rescaling["module"] = "keras.layers";
  rescaling["class_name"] = "Rescaling";
  rescaling["config"]["scale"] = scale;
  rescaling["config"]["offset"] = offset;
  return rescaling;
}

}  // namespace muster
