#include "common/learn/train/keras/keras_implicit_masks.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

using Names = absl::flat_hash_set<std::string>;

// Adds the names of the layers whose outputs `json` contains.
void CollectSources(const KerasJson& json, Names* sources) {
  if (TextMember(json, "class_name") == "__keras_tensor__") {
    const KerasJson& history =
        FindMember(FindMember(json, "config"), "keras_history");
    if (history.is_array() && !history.empty() && history[0].is_string()) {
      sources->insert(history[0].get<std::string>());
    }
    return;
  }
  for (const KerasJson& inner : json) {
    if (inner.is_structured()) CollectSources(inner, sources);
  }
}

Names SourcesOf(const KerasJson& json) {
  Names sources;
  CollectSources(json, &sources);
  return sources;
}

std::string NameOf(const KerasJson& entry) {
  std::string name = TextMember(entry, "name");
  if (name.empty()) name = TextMember(FindMember(entry, "config"), "name");
  return name;
}

bool IsOperation(const KerasJson& entry) {
  return absl::StartsWith(TextMember(entry, "module"), "keras.src.ops");
}

bool IsMaskArgument(absl::string_view name) {
  return name == "mask" || absl::EndsWith(name, "_mask");
}

class MaskRemover {
 public:
  explicit MaskRemover(KerasJson* config)
      : config_(*config), layers_((*config)["layers"]) {}

  void Remove() {
    for (const KerasJson& entry : layers_) {
      const std::string name = NameOf(entry);
      inputs_[name] = SourcesOf(Positional(entry));
      const std::string kind = TextMember(entry, "class_name");
      if (IsOperation(entry) && (kind == "OnesLike" || kind == "ZerosLike")) {
        shapes_.insert(name);
      }
    }
    // An operation may stand before those whose results it takes.
    while (FindMasks()) continue;
    if (masked_by_.empty()) return;
    RemoveArguments();
    RemoveOperations();
  }

 private:
  static KerasJson Positional(const KerasJson& entry) {
    KerasJson all = KerasJson::array();
    for (const KerasJson& node : FindMember(entry, "inbound_nodes")) {
      if (node.is_object()) all.push_back(FindMember(node, "args"));
    }
    return all;
  }

  // Adds the operations that compute masks of what is known. Returns true if
  // there are more than before.
  bool FindMasks() {
    bool has_more = false;
    for (const KerasJson& entry : layers_) {
      const std::string name = NameOf(entry);
      if (!IsOperation(entry) || masked_by_.contains(name)) continue;
      Names maskers = MaskersOf(entry);
      if (maskers.empty()) continue;
      masked_by_[name] = std::move(maskers);
      has_more = true;
    }
    return has_more;
  }

  // Returns the layers whose mask an operation computes.
  Names MaskersOf(const KerasJson& operation) const {
    const KerasJson& nodes = FindMember(operation, "inbound_nodes");
    if (nodes.size() != 1) return {};
    const KerasJson& args = FindMember(nodes.front(), "args");
    if (TextMember(operation, "class_name") == "NotEqual") {
      return MaskersComparing(args);
    }
    Names maskers;
    for (const std::string& source : SourcesOf(args)) {
      if (shapes_.contains(source)) continue;
      const auto found = masked_by_.find(source);
      if (found == masked_by_.end()) return {};
      maskers.insert(found->second.begin(), found->second.end());
    }
    return maskers;
  }

  // Returns the layers that mask where args[0] equals args[1].
  Names MaskersComparing(const KerasJson& args) const {
    if (!args.is_array() || args.size() != 2 || !args[1].is_number()) return {};
    Names maskers;
    for (const KerasJson& entry : layers_) {
      const KerasJson& config = FindMember(entry, "config");
      const bool masks = FindMember(config, "mask_zero") == true
                             ? args[1] == 0
                             : TextMember(entry, "class_name") == "Masking" &&
                                   FindMember(config, "mask_value") == args[1];
      if (!masks) continue;
      for (const KerasJson& node : FindMember(entry, "inbound_nodes")) {
        const KerasJson& taken = FindMember(node, "args");
        if (taken.is_array() && !taken.empty() && taken[0] == args[0]) {
          maskers.insert(NameOf(entry));
        }
      }
    }
    return maskers;
  }

  // Returns true if `name` is one of `maskers` or computes with its outputs.
  bool Follows(const std::string& name, const Names& maskers) const {
    Names seen;
    std::vector<std::string> pending = {name};
    while (!pending.empty()) {
      const std::string one = std::move(pending.back());
      pending.pop_back();
      if (maskers.contains(one)) return true;
      const auto found = inputs_.find(one);
      if (!seen.insert(one).second || found == inputs_.end()) continue;
      pending.insert(pending.end(), found->second.begin(), found->second.end());
    }
    return false;
  }

  bool IsImplicit(const KerasJson& mask, const KerasJson& args) const {
    const Names operations = SourcesOf(mask);
    const Names inputs = SourcesOf(args);
    return !operations.empty() &&
           std::all_of(operations.begin(), operations.end(),
                       [&](const std::string& operation) {
                         const auto found = masked_by_.find(operation);
                         return found != masked_by_.end() &&
                                std::any_of(inputs.begin(), inputs.end(),
                                            [&](const std::string& input) {
                                              return Follows(input,
                                                             found->second);
                                            });
                       });
  }

  void RemoveArguments() {
    for (KerasJson& entry : layers_) {
      if (IsRemovable(NameOf(entry))) continue;
      if (!FindMember(entry, "inbound_nodes").is_array()) continue;
      for (KerasJson& node : entry["inbound_nodes"]) {
        if (!FindMember(node, "kwargs").is_object()) continue;
        for (auto& [name, value] : node["kwargs"].items()) {
          if (IsMaskArgument(name) &&
              IsImplicit(value, FindMember(node, "args"))) {
            value = nullptr;
          }
        }
      }
    }
  }

  bool IsRemovable(const std::string& name) const {
    return masked_by_.contains(name) || shapes_.contains(name);
  }

  // Unless something else takes one of them.
  void RemoveOperations() {
    Names used;
    CollectHistories(FindMember(config_, "output_layers"), &used);
    for (const KerasJson& entry : layers_) {
      if (IsRemovable(NameOf(entry))) continue;
      CollectSources(FindMember(entry, "inbound_nodes"), &used);
    }
    const bool has_other_use =
        std::any_of(used.begin(), used.end(),
                    [&](const std::string& name) { return IsRemovable(name); });
    if (has_other_use) return;
    KerasJson kept = KerasJson::array();
    for (const KerasJson& entry : layers_) {
      if (!IsRemovable(NameOf(entry))) kept.push_back(entry);
    }
    layers_ = std::move(kept);
  }

  // As CollectSources(), of [layer, call, output] without an object around it.
  static void CollectHistories(const KerasJson& json, Names* names) {
    if (json.is_string()) names->insert(json.get<std::string>());
    if (!json.is_structured()) return;
    for (const KerasJson& inner : json) CollectHistories(inner, names);
  }

  const KerasJson& config_;
  KerasJson& layers_;
  absl::flat_hash_map<std::string, Names> inputs_;
  // Operations that masks of tensors of different shapes are merged with.
  Names shapes_;
  // The layers whose masks each operation computes.
  absl::flat_hash_map<std::string, Names> masked_by_;
};

}  // namespace

void RemoveImplicitMasks(KerasJson* config) {
  if (!FindMember(*config, "layers").is_array()) return;
  MaskRemover(config).Remove();
}

}  // namespace muster
