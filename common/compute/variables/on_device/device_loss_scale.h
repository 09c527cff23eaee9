#ifndef COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_LOSS_SCALE_H_
#define COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_LOSS_SCALE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/kernels/cuda/device_code/update_parameters.h"
#include "common/compute/variables/on_device/device_update.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Lets a device decide whether the gradients of a scaled loss are applied: not
// if an element of one is not finite. The step counts of variables depend on
// the decisions before, which the host may not know yet. It enqueues the
// updates of a step for each number of steps that may have been skipped, and
// variant() selects the right ones (LossScaleState).
//
// Errors are those of the device. Not thread-safe.
class DeviceLossScale {
 public:
  // Both are borrowed.
  static absl::StatusOr<std::unique_ptr<DeviceLossScale>> Create(
      Device* device, DeviceStream* stream);

  // Enqueues the decision about a step with these gradients. `scale` is the
  // float32 scalar, in the memory of the device, with which it was computed.
  absl::Status Decide(absl::Span<const Tensor> gradients, const Tensor& scale);
  // Of the last step that was decided, for the work that is enqueued next.
  const int32_t* variant() const { return &state()->variant; }
  const Tensor& gradient() const { return gradient_; }

  // The number of steps that were decided and not settled.
  int unsettled_count() const { return static_cast<int>(unsettled_.size()); }
  // Blocks until the first of them is decided on the device, and returns
  // whether it was skipped.
  absl::StatusOr<bool> Settle();
  // The same, for a step whose outcome is not read.
  void Forget();
  // Forgets the last decision, of a step that has failed on the host.
  void ForgetLast();

 private:
  // A decision.
  struct Decision {
    std::shared_ptr<Buffer> was_skipped;  // Pinned: an int32.
    std::unique_ptr<Event> done;
  };

  DeviceLossScale(Device* device, DeviceStream* stream)
      : device_(*device), stream_(*stream) {}

  internal::LossScaleState* state() const {
    return reinterpret_cast<internal::LossScaleState*>(state_->data());
  }
  absl::StatusOr<Decision> TakeDecision();

  Device& device_;
  DeviceStream& stream_;
  std::shared_ptr<Buffer> state_;  // A LossScaleState.
  Tensor gradient_;                // In it.
  DeviceScratch found_;
  std::deque<Decision> unsettled_;
  std::vector<Decision> free_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_LOSS_SCALE_H_
