#ifndef COMMON_COMPUTE_VARIABLES_ON_DEVICE_HOST_SESSION_OVER_DEVICE_H_
#define COMMON_COMPUTE_VARIABLES_ON_DEVICE_HOST_SESSION_OVER_DEVICE_H_

#include <memory>

#include "common/compute/variables/variable_session.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"

namespace muster {

// Returns a session for steps on the host over `on_device`, a session of
// `device` for steps on `stream`. Copies values, and waits for the device in
// each call whose result the caller may read. The opposite of
// DeviceSessionOverHost(). `device` is borrowed.
std::unique_ptr<VariableSession> HostSessionOverDevice(
    Device* device, std::unique_ptr<DeviceStream> stream,
    std::unique_ptr<VariableSession> on_device);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ON_DEVICE_HOST_SESSION_OVER_DEVICE_H_
