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

// Lets a device decide whether to apply the gradients of a scaled loss: it
// drops them if an element of one is not finite. The step counts of variables
// depend on earlier decisions, which may not have reached the host. So the host
// enqueues the updates of a step once for each number of earlier steps that may
// have been skipped, and variant() selects the right ones (LossScaleState).
//
// Errors are those of the device. Not thread-safe.
class DeviceLossScale {
 public:
  // Borrows `device` and `stream`.
  static absl::StatusOr<std::unique_ptr<DeviceLossScale>> Create(
      Device* device, DeviceStream* stream);

  // Enqueues the decision about a step with these gradients. `scale` is the
  // loss scale of the step: a float32 scalar in the memory of the device.
  absl::Status Decide(absl::Span<const Tensor> gradients, const Tensor& scale);
  // The variant that the last decision selects, for the work that is enqueued
  // next.
  const int32_t* variant() const { return &state()->variant; }
  const Tensor& gradient() const { return gradient_; }

  // Number of decisions that are not settled.
  int unsettled_count() const { return static_cast<int>(unsettled_.size()); }
  // Blocks until the device has made the oldest unsettled decision. Returns
  // true if the step was skipped.
  absl::StatusOr<bool> Settle();
  // As Settle(), without waiting for the outcome.
  void Forget();
  // Discards the last decision, because its step has failed on the host.
  void ForgetLast();

 private:
  // One decision of the device.
  struct Decision {
    std::shared_ptr<Buffer> was_skipped;  // Pinned memory: an int32.
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
  Tensor gradient_;                // In state_.
  DeviceScratch found_;
  std::deque<Decision> unsettled_;
  std::vector<Decision> free_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_LOSS_SCALE_H_
