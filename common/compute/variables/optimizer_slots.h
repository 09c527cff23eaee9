#ifndef COMMON_COMPUTE_VARIABLES_OPTIMIZER_SLOTS_H_
#define COMMON_COMPUTE_VARIABLES_OPTIMIZER_SLOTS_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Returns the type of a slot of a variable of `variable_type`.
inline TensorType SlotType(const SlotSpec& slot,
                           const TensorType& variable_type) {
  return {variable_type.dtype, slot.shape.value_or(variable_type.shape)};
}

// Checks that the slots which exist have the types that `rule`, which is bound
// to the variable, requires. Does not check slots of a share.
//   kInvalidArgument  names the variable, the slot and both types
absl::Status CheckSlotTypes(const UpdateRule& rule, absl::string_view variable,
                            const TensorType& variable_type,
                            absl::Span<const VariableState::Slot> slots);

// Moves the slots of `rule` to the front of `slots`, in the rule's order.
// Creates missing ones with `make`, a Tensor(const SlotSpec&). Keeps the others
// behind them for a rule that needs them.
template <typename Make>
void ArrangeSlots(const UpdateRule& rule,
                  std::vector<VariableState::Slot>* slots, Make make) {
  for (size_t i = 0; i < rule.slots().size(); ++i) {
    const SlotSpec& wanted = rule.slots()[i];
    const auto found = std::find_if(slots->begin() + i, slots->end(),
                                    [&](const VariableState::Slot& slot) {
                                      return slot.name == wanted.name;
                                    });
    if (found != slots->end()) {
      std::rotate(slots->begin() + i, found, found + 1);
    } else {
      slots->insert(slots->begin() + i, {wanted.name, make(wanted)});
    }
  }
}

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_OPTIMIZER_SLOTS_H_
