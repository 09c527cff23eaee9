#ifndef COMMON_CORE_DEVICE_DRIVER_REAL_DRIVER_H_
#define COMMON_CORE_DEVICE_DRIVER_REAL_DRIVER_H_

#include "absl/status/statusor.h"
#include "common/core/device/driver/driver_api.h"

namespace muster {

// Returns the driver of this machine, loaded from libcuda.so.1 by the first
// call. Programs are not linked with it, so they start on machines without one.
// It lives as long as the process. Thread-safe.
//   kUnavailable  there is no driver, it is older than CUDA 12.0, or it finds
//                 no GPU; says what was searched for and what was found
absl::StatusOr<const driver::DriverApi*> RealDriver();

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_DRIVER_REAL_DRIVER_H_
