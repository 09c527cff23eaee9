#include "common/learn/train/keras/keras_node.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/structure.h"
#include "common/learn/train/keras/keras_differences.h"
#include "common/learn/train/keras/keras_object.h"

namespace muster {
namespace {

KerasHistory HistoryFrom(const KerasJson& json) {
  return {json[0].get<std::string>(), json[1].get<size_t>(),
          json[2].get<size_t>()};
}

// Returns the members of an object in the order of their keys, which is that of
// the leaves of a dictionary in Keras.
std::map<std::string, KerasJson> Ordered(const KerasJson& object) {
  std::map<std::string, KerasJson> ordered;
  for (const auto& [key, value] : object.items()) ordered[key] = value;
  return ordered;
}

// Appends the symbolic tensors in `json`, at any depth of lists and
// dictionaries.
void CollectTensors(const KerasJson& json, std::vector<KerasHistory>* inputs) {
  if (json.is_array()) {
    for (const KerasJson& entry : json) CollectTensors(entry, inputs);
    return;
  }
  if (!json.is_object()) return;
  if (!json.contains("class_name")) {
    for (const auto& [key, value] : Ordered(json)) {
      CollectTensors(value, inputs);
    }
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

// `next` is the first of the leaves.
KerasJson NestedJson(const Structure& structure, const KerasJson& leaves,
                     size_t* next) {
  if (structure.is_leaf()) return leaves[(*next)++];
  KerasJson nested =
      structure.is_dictionary() ? KerasJson::object() : KerasJson::array();
  for (size_t i = 0; i < structure.children().size(); ++i) {
    KerasJson child = NestedJson(structure.children()[i], leaves, next);
    if (structure.is_dictionary()) {
      nested[structure.keys()[i]] = std::move(child);
    } else {
      nested.push_back(std::move(child));
    }
  }
  return nested;
}

}  // namespace

KerasJson NestedJson(const Structure& structure, const KerasJson& leaves) {
  size_t next = 0;
  return NestedJson(structure, leaves, &next);
}

absl::Status BadKerasStructure(absl::string_view place,
                               absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", what));
}

absl::StatusOr<KerasHistories> KerasHistoriesFrom(absl::string_view place,
                                                  const KerasJson& json) {
  if (IsKerasHistory(json)) return KerasHistories{{HistoryFrom(json)}, {}};
  if (!json.is_structured()) {
    return BadKerasStructure(place, "expected [layer, call, output]");
  }
  if (json.empty()) return BadKerasStructure(place, "names no layer");
  KerasHistories all;
  std::vector<Structure> children;
  std::vector<Structure::Entry> entries;
  const auto add = [&](const std::string& key,
                       const KerasJson& inner) -> absl::Status {
    ASSIGN_OR_RETURN(KerasHistories of_inner, KerasHistoriesFrom(place, inner));
    for (KerasHistory& leaf : of_inner.leaves) {
      all.leaves.push_back(std::move(leaf));
    }
    if (json.is_array()) {
      children.push_back(std::move(of_inner.structure));
    } else {
      entries.emplace_back(key, std::move(of_inner.structure));
    }
    return absl::OkStatus();
  };
  if (json.is_array()) {
    for (const KerasJson& inner : json) RETURN_IF_ERROR(add("", inner));
    all.structure = Structure::List(std::move(children));
    return all;
  }
  for (const auto& [key, inner] : Ordered(json)) {
    RETURN_IF_ERROR(add(key, inner));
  }
  all.structure = Structure::Dictionary(std::move(entries));
  return all;
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
  if (node.inputs.empty()) {
    return BadKerasStructure(place, "is called on nothing");
  }
  return node;
}

}  // namespace muster
