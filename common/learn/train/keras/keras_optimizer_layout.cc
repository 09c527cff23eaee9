#include "common/learn/train/keras/keras_optimizer_layout.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

// The number of slots that Keras keeps side by side for each variable. Those
// after them are kept slot by slot.
size_t InterleavedCount(const UpdateRule& rule) {
  return rule.name() == "rmsprop" ? 1 : 2;
}

std::string AttributeOf(absl::string_view rule, absl::string_view slot) {
  static constexpr struct {
    absl::string_view rule;
    absl::string_view slot;
    absl::string_view attribute;
  } kOthers[] = {
      {"adamax", "momentum", "_m"},
      {"adamax", "norm", "_u"},
      {"sgd", "momentum", "momentums"},
  };
  for (const auto& other : kOthers) {
    if (other.rule == rule && other.slot == slot) {
      return std::string(other.attribute);
    }
  }
  if (slot == "velocity") return "_velocities";
  return absl::StrCat("_", slot, "s");
}

}  // namespace

absl::StatusOr<KerasOptimizerLayout> KerasOptimizerLayoutOf(
    const Layer& model, const proto::Optimizer& optimizer) {
  ASSIGN_OR_RETURN(const std::unique_ptr<UpdateRule> rule,
                   UpdateRule::Create(optimizer));
  KerasOptimizerLayout layout;
  layout.count = KerasOptimizerLayout::kIterations + 1;
  if (!optimizer.has_learning_rate_schedule()) {
    layout.learning_rate = layout.count++;
  }
  const std::vector<Weight> weights = TrainableOf(model.weights());
  const absl::Span<const SlotSpec> slots = rule->slots();
  for (size_t begin = 0; begin < slots.size();) {
    const size_t count = begin == 0 ? InterleavedCount(*rule) : 1;
    for (size_t i = 0; i < weights.size(); ++i) {
      for (const SlotSpec& slot : slots.subspan(begin, count)) {
        layout.slots.push_back(
            {.variable = weights[i].name(),
             .slot = slot.name,
             .attribute = AttributeOf(rule->name(), slot.name),
             .weight_index = i,
             .number = layout.count++,
             .type = weights[i].handle().type,
             .initial_value = slot.initial_value});
      }
    }
    begin += count;
  }
  if (rule->name() == "nadam") layout.momentum_product = layout.count++;
  return layout;
}

}  // namespace muster
