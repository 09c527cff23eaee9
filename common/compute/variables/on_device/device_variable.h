#ifndef COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_VARIABLE_H_
#define COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_VARIABLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/tensor.h"
#include "proto/variable.pb.h"

namespace muster {

// One variable in the memory of a device. Not thread-safe: the store's mutex
// guards it.
struct DeviceVariable {
  proto::VariableSpec spec;
  TensorType type;
  Tensor value;
  Tensor spare;  // The previous value, or invalid.
  std::vector<VariableState::Slot> slots;
  // `slots` begins with the slots of `own_rule`, which is UpdateRuleFor() of
  // `slots_rule` and this variable.
  std::shared_ptr<const UpdateRule> slots_rule;
  std::shared_ptr<const UpdateRule> own_rule;
  int64_t update_count = 0;  // Gradients whose updates are enqueued or done.

  int64_t row_count() const { return type.shape.dim(0); }
  int64_t row_elements() const {
    return type.shape.ElementCountInRange(1, type.shape.rank());
  }
};

// Allocates a tensor that outlives streams: see DeviceMemory::NoteUse().
//   as DeviceMemory::Allocate()
absl::StatusOr<Tensor> AllocateOnDevice(Device* device, const TensorType& type,
                                        absl::string_view what,
                                        absl::string_view variable);

// Makes `variable` the only owner of its value, so that work on `stream` may
// change it. A step that has read the value keeps the old one.
//   as DeviceMemory::Allocate()
absl::Status MakeWritable(Device* device, DeviceStream* stream,
                          DeviceVariable* variable);

// Binds `rule` to the variable for the updates to come, and creates missing
// slots on `stream`.
//   kInvalidArgument  a slot was restored with another shape
//   else              as DeviceMemory::Allocate()
absl::Status MakeSlots(Device* device, DeviceStream* stream,
                       const std::shared_ptr<const UpdateRule>& rule,
                       DeviceVariable* variable);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_VARIABLE_H_
