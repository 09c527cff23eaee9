#ifndef COMMON_COMPUTE_RUNTIME_PROCESS_DEVICES_H_
#define COMMON_COMPUTE_RUNTIME_PROCESS_DEVICES_H_

#include "absl/status/statusor.h"
#include "common/compute/kernels/kernel.h"
#include "common/core/device/device.h"

// The devices of this process, DeviceSet::OfProcess(), in the form that
// executors need.
namespace muster {

// Returns the device on which this process computes if no device is named:
// gpu:0 if the process has a GPU, otherwise null, which is the host.
//   errors  as DeviceSet::FindDevice(), except kUnavailable
//
// Equivalent to: TensorFlow's default placement.
absl::StatusOr<Device*> FindDefaultDevice();

// Returns the kernels of a device of the process; null stands for the host.
// They live as long as the process. Thread-safe.
const KernelRegistry& KernelsOf(Device* device);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_PROCESS_DEVICES_H_
