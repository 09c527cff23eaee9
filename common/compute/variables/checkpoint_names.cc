#include "common/compute/variables/checkpoint_names.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster {
namespace {

ObjectPath Under(ObjectPath root, absl::string_view variable) {
  for (absl::string_view part : absl::StrSplit(variable, '/')) {
    root.emplace_back(part);
  }
  return root;
}

// Reverses the escaping of a name that object_graph.h describes.
std::string Unescape(absl::string_view name) {
  return absl::StrReplaceAll(name, {{"..", "."}, {".S", "/"}});
}

// Returns the part of `key` between `before` and `after`; nothing if `key` does
// not begin and end with them.
std::optional<std::string> Between(absl::string_view before,
                                   absl::string_view key,
                                   absl::string_view after) {
  if (!absl::ConsumePrefix(&key, before) || !absl::ConsumeSuffix(&key, after) ||
      key.empty() || absl::StrContains(key, "/.OPTIMIZER_SLOT/")) {
    return std::nullopt;
  }
  return std::string(key);
}

constexpr absl::string_view kValueSuffix = "/.ATTRIBUTES/VARIABLE_VALUE";

}  // namespace

ObjectPath ModelPath() { return {"model"}; }

ObjectPath VariablePath(absl::string_view variable) {
  return Under(ModelPath(), variable);
}

ObjectPath OptimizerPath() { return {"optimizer"}; }

ObjectPath UpdateCountPath(absl::string_view variable) {
  return Under({"optimizer", "update_counts"}, variable);
}

ObjectPath IterationsPath() { return {"optimizer", "iterations"}; }
ObjectPath LearningRatePath() { return {"optimizer", "learning_rate"}; }
ObjectPath MomentumProductPath() { return {"optimizer", "momentum_product"}; }
ObjectPath TrainingStatePath() { return {"training_state"}; }
ObjectPath SaveCounterPath() { return {"save_counter"}; }

std::string VariableValueKey(absl::string_view variable) {
  return VariableKey(VariablePath(variable));
}

std::string VariableSlotKey(absl::string_view variable,
                            absl::string_view slot) {
  return SlotKey(VariablePath(variable), OptimizerPath(), slot);
}

std::string UpdateCountKey(absl::string_view variable) {
  return VariableKey(UpdateCountPath(variable));
}

std::string OpenRoundKey(absl::string_view variable) {
  return VariableKey(Under({"optimizer", "open_rounds"}, variable));
}

std::optional<std::string> SlotNameOf(absl::string_view variable,
                                      absl::string_view key) {
  // The key of a slot with an empty name: the text before and after the name.
  const std::string frame = VariableSlotKey(variable, "");
  const absl::string_view before = absl::StripSuffix(frame, kValueSuffix);
  std::optional<std::string> name = Between(before, key, kValueSuffix);
  if (name.has_value()) name = Unescape(*name);
  return name;
}

std::optional<std::string> VariableNameOf(absl::string_view key) {
  std::optional<std::string> path = Between("model/", key, kValueSuffix);
  if (!path.has_value()) return std::nullopt;
  std::vector<std::string> names;
  for (absl::string_view name : absl::StrSplit(*path, '/')) {
    names.push_back(Unescape(name));
  }
  std::string variable = std::move(names.front());
  for (size_t i = 1; i < names.size(); ++i) variable += "/" + names[i];
  return variable;
}

}  // namespace muster
