#include "common/learn/train/keras/keras_optimizer_layout.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/optimizers/staged_rule.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

// Groups of slots in Keras' order: those of a group are kept side by side for
// each variable, one group after the other. Averages come first, then the sums
// of gradients, then what the rule keeps.
std::vector<std::vector<SlotSpec>> SlotGroupsOf(const UpdateRule& rule) {
  const size_t interleaved_count =
      rule.name() == "rmsprop" || rule.name() == "program" ? 1
      : rule.name() == "adafactor"                         ? 3
                                                           : 2;
  std::vector<std::vector<SlotSpec>> first;
  std::vector<std::vector<SlotSpec>> of_rule;
  for (const SlotSpec& slot : rule.slots()) {
    if (slot.name == kGradientAccumulatorSlot) {
      first.push_back({slot});
    } else if (slot.name == kAverageSlot) {
      first.insert(first.begin(), {slot});
    } else if (of_rule.size() == 1 &&
               of_rule.front().size() < interleaved_count) {
      of_rule.front().push_back(slot);
    } else {
      of_rule.push_back({slot});
    }
  }
  first.insert(first.end(), of_rule.begin(), of_rule.end());
  return first;
}

// Returns null if the rule has none.
const SlotSpec* FindSlot(const UpdateRule& rule, absl::string_view name) {
  for (const SlotSpec& slot : rule.slots()) {
    if (slot.name == name) return &slot;
  }
  return nullptr;
}

std::string SlotAttribute(absl::string_view rule, absl::string_view slot) {
  static constexpr struct {
    absl::string_view rule;
    absl::string_view slot;
    absl::string_view attribute;
  } kOthers[] = {
      {"adafactor", "r", "_r"},
      {"adafactor", "c", "_c"},
      {"adafactor", "velocity", "_v"},
      {"adamax", "momentum", "_m"},
      {"adamax", "norm", "_u"},
      {"muon", "momentum", "momentums"},
      {"muon", "velocity", "adam_velocities"},
      {"schedule_free_adamw", "z", "_momentums"},
      {"sgd", "momentum", "momentums"},
  };
  for (const auto& other : kOthers) {
    if (other.rule == rule && other.slot == slot) {
      return std::string(other.attribute);
    }
  }
  if (slot == kAverageSlot) return "_model_variables_moving_average";
  if (slot == kGradientAccumulatorSlot) return "_accumulated_gradients";
  if (slot == "velocity") return "_velocities";
  return absl::StrCat("_", slot, "s");
}

}  // namespace

absl::StatusOr<KerasOptimizerLayout> KerasOptimizerLayoutOf(
    const Layer& model, const proto::Optimizer& optimizer) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const UpdateRule> rule,
                   UpdateRule::Create(optimizer));
  KerasOptimizerLayout layout;
  layout.count = KerasOptimizerLayout::kIterations + 1;
  if (!optimizer.has_learning_rate_schedule()) {
    layout.learning_rate = layout.count++;
  }
  const std::vector<Weight> weights = TrainableOf(model.weights());
  std::vector<std::shared_ptr<const UpdateRule>> rules;
  for (const Weight& weight : weights) {
    rules.push_back(
        UpdateRuleFor(rule, weight.name(), weight.handle().type.shape));
  }
  for (const std::vector<SlotSpec>& group : SlotGroupsOf(*rule)) {
    for (size_t i = 0; i < weights.size(); ++i) {
      const TensorType& type = weights[i].handle().type;
      for (const SlotSpec& of_group : group) {
        const SlotSpec* const slot = FindSlot(*rules[i], of_group.name);
        if (slot == nullptr) {
          if (rule->name() == "adafactor" && !optimizer.has_loss_scale()) {
            layout.unused.push_back(layout.count++);
          }
          continue;
        }
        layout.slots.push_back(
            {.variable = weights[i].name(),
             .slot = slot->name,
             .attribute = SlotAttribute(rule->name(), slot->name),
             .weight_index = i,
             .number = layout.count++,
             .type = {type.dtype, slot->shape.value_or(type.shape)},
             .initial_value = slot->initial_value,
             .starts_as_variable = slot->starts_as_variable});
      }
    }
  }
  if (rule->name() == "nadam") layout.momentum_product = layout.count++;
  return layout;
}

}  // namespace muster
