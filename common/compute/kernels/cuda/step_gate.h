#ifndef COMMON_COMPUTE_KERNELS_CUDA_STEP_GATE_H_
#define COMMON_COMPUTE_KERNELS_CUDA_STEP_GATE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/cuda/device_code/device_elements.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/buffer.h"

namespace muster {

// Lets the device decide whether the updates of a step are applied, so that the
// host need not look at the data of a step before it enqueues its updates, and
// the next step.
//
// A kernel that finds an error in the data closes the gate; kernels that change
// variables do nothing behind a closed gate. It stays closed for all later
// steps, which would not have run after an error either, until the host opens
// it. The host learns which step closed it when it waits for the results.
//
// Belongs to the work of one stream. Functions that enqueue return errors of
// the device. Not thread-safe.
class StepGate {
 public:
  // An open gate. `device` and `stream` are borrowed.
  static absl::StatusOr<std::unique_ptr<StepGate>> Create(Device* device,
                                                          DeviceStream* stream);

  // Enqueues the beginning of a step, and returns its number, which is not 0.
  absl::StatusOr<int32_t> BeginStep();
  // Enqueues a check of the float at `weight`, in the memory of the device,
  // which closes the gate unless it is finite and at least 0.
  absl::Status CheckWeight(const uint8_t* weight);

  // The number of the step that closed the gate; 0: no step that is done.
  int32_t closed_by() const;
  // The work of the stream must be done.
  absl::Status Open();

  // The argument of kernels.
  internal::DeviceGate* on_device() const {
    return reinterpret_cast<internal::DeviceGate*>(memory_->data());
  }

 private:
  StepGate(Device* device, DeviceStream* stream)
      : device_(*device), stream_(*stream) {}

  template <typename Parameter>
  absl::Status Launch(absl::string_view kernel, Parameter parameter);
  int32_t* closed_by_word() const {
    return reinterpret_cast<int32_t*>(pinned_->data());
  }

  Device& device_;
  DeviceStream& stream_;
  std::shared_ptr<Buffer> memory_;  // A DeviceGate.
  std::shared_ptr<Buffer> pinned_;  // Its closed_by, in memory of the host.
  int32_t step_ = 0;                // The last one begun.
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_STEP_GATE_H_
