#include "common/compute/variables/on_device/device_variable.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/compute/variables/constraint.h"
#include "common/compute/variables/optimizer_slots.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

absl::StatusOr<Tensor> MakeSlot(Device* device, DeviceStream* stream,
                                const SlotSpec& slot,
                                const DeviceVariable& variable) {
  const TensorType type = SlotType(slot, variable.type);
  ASSIGN_OR_RETURN(Tensor made,
                   AllocateOnDevice(device, type, "optimizer slot of variable",
                                    variable.spec.name()));
  if (slot.starts_as_variable) {
    RETURN_IF_ERROR(stream->Copy(variable.value, &made));
    return made;
  }
  if (slot.initial_value == 0) {
    RETURN_IF_ERROR(stream->Fill(made.address(), 0, made.size_bytes()));
    return made;
  }
  const Tensor initial =
      Tensor::Full(type.dtype, type.shape, slot.initial_value);
  RETURN_IF_ERROR(stream->Copy(initial, &made));
  return made;
}

}  // namespace

absl::StatusOr<Tensor> AllocateOnDevice(Device* device, const TensorType& type,
                                        absl::string_view what,
                                        absl::string_view variable) {
  const size_t size_bytes = type.shape.element_count() * SizeOf(type.dtype);
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer,
                   device->memory().Allocate(std::max<size_t>(size_bytes, 1),
                                             {what, variable}));
  return Tensor(type.dtype, type.shape, std::move(buffer));
}

absl::Status MakeWritable(Device* device, DeviceStream* stream,
                          DeviceVariable* variable) {
  if (variable->value.IsSoleOwner()) return absl::OkStatus();
  if (!variable->spare.IsSoleOwner()) {
    ASSIGN_OR_RETURN(variable->spare,
                     AllocateOnDevice(device, variable->type, "variable",
                                      variable->spec.name()));
  }
  RETURN_IF_ERROR(stream->Copy(variable->value, &variable->spare));
  std::swap(variable->value, variable->spare);
  return absl::OkStatus();
}

absl::Status MakeSlots(Device* device, DeviceStream* stream,
                       const std::shared_ptr<const UpdateRule>& rule,
                       DeviceVariable* variable) {
  if (variable->slots_rule == rule) return absl::OkStatus();
  std::shared_ptr<const UpdateRule> own_rule =
      UpdateRuleFor(rule, variable->spec.name(), variable->type.shape);
  const Place place = variable->value.place();
  RETURN_IF_ERROR(own_rule->Prepare(variable->type, place));
  RETURN_IF_ERROR(
      PrepareConstraint(variable->spec.constraint(), variable->type, place));
  RETURN_IF_ERROR(CheckSlotTypes(*own_rule, variable->spec.name(),
                                 variable->type, variable->slots));
  absl::Status status;
  ArrangeSlots(*own_rule, &variable->slots, [&](const SlotSpec& slot) {
    absl::StatusOr<Tensor> made = MakeSlot(device, stream, slot, *variable);
    if (made.ok()) return *std::move(made);
    status.Update(made.status());
    return Tensor();
  });
  if (!status.ok()) {
    std::erase_if(variable->slots, [](const VariableState::Slot& slot) {
      return !slot.value.IsValid();
    });
    return status;
  }
  variable->slots_rule = rule;
  variable->own_rule = std::move(own_rule);
  return absl::OkStatus();
}

}  // namespace muster
