#include "common/compute/variables/optimizer_slots.h"

#include "absl/strings/str_cat.h"

namespace muster {

absl::Status CheckSlotTypes(const UpdateRule& rule, absl::string_view variable,
                            const TensorType& variable_type,
                            absl::Span<const VariableState::Slot> slots) {
  for (const SlotSpec& wanted : rule.slots()) {
    const TensorType type = SlotType(wanted, variable_type);
    for (const VariableState::Slot& slot : slots) {
      if (slot.name != wanted.name || slot.is_share) continue;
      if (slot.value.type() == type) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("variable \"", variable, "\": slot \"", slot.name,
                       "\" was restored as ", slot.value.type().ToString(),
                       "; ", rule.name(), " needs ", type.ToString()));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
