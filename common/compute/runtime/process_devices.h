#ifndef COMMON_COMPUTE_RUNTIME_PROCESS_DEVICES_H_
#define COMMON_COMPUTE_RUNTIME_PROCESS_DEVICES_H_

#include "absl/status/statusor.h"
#include "common/compute/kernels/kernel.h"
#include "common/core/device/device.h"

// The devices of this process, DeviceSet::OfProcess(), as executors use them.
namespace muster {

// Returns the device on which this process computes where no device is named:
// gpu:0 if it has a GPU, and null, the host, otherwise.
//   errors  as DeviceSet::FindDevice(), but for kUnavailable
//
// Equivalent to: TensorFlow's default placement.
absl::StatusOr<Device*> FindDefaultDevice();

// Returns the kernels of a device of the process; null stands for the host.
// They live as long as the process. Thread-safe.
const KernelRegistry& KernelsOf(Device* device);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_PROCESS_DEVICES_H_
