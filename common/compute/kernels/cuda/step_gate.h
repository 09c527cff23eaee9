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

// Lets the device decide whether the updates of a step are applied. So the host
// can enqueue the updates and the next step before it has checked the data of
// the step.
//
// A kernel that finds an error in the data closes the gate. Kernels that change
// variables do nothing while the gate is closed. The gate stays closed for all
// later steps until the host opens it: after an error, these steps would not
// have run on the host either. The host reads which step closed the gate when
// it waits for the results.
//
// A gate belongs to the work of one stream. Functions that enqueue work return
// errors of the device. Not thread-safe.
class StepGate {
 public:
  // Returns an open gate. `device` and `stream` are borrowed.
  static absl::StatusOr<std::unique_ptr<StepGate>> Create(Device* device,
                                                          DeviceStream* stream);

  // Enqueues the beginning of a step, and returns its number, which is not 0.
  absl::StatusOr<int32_t> BeginStep();
  // Enqueues a check of the float at `weight`, in the memory of the device,
  // which closes the gate unless it is finite and at least 0.
  absl::Status CheckWeight(const uint8_t* weight);

  // Returns the number of the step that closed the gate; 0 if no completed step
  // has closed it.
  int32_t closed_by() const;
  // Opens the gate. Requires that the work of the stream is done.
  absl::Status Open();

  // The gate in the form that kernels take.
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
  std::shared_ptr<Buffer> pinned_;  // Host copy of its closed_by.
  int32_t step_ = 0;                // The last step that has begun.
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_STEP_GATE_H_
