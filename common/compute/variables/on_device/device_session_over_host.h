#ifndef COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_SESSION_OVER_HOST_H_
#define COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_SESSION_OVER_HOST_H_

#include <memory>

#include "common/compute/variables/variable_session.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"

namespace muster {

// Lets a step on a device use any store of the host: a LocalVariableStore,
// parameter servers. The result is a session over `host`, whose Read() and
// Gather() give values in the memory of the device, and whose updates take
// values and indices of both places.
//
// Work is enqueued on `stream`, which is that of the step. Gradients are copied
// to pinned memory behind the step, and passed on in their order: when a later
// update finds them copied, before a read of the variable, and by Commit().
// So pushes to parameter servers begin while the device computes.
//
// `device` and `stream` are borrowed and outlive the session. Errors are also
// those of DeviceStream; kDeadlineExceeded if the device does not finish the
// step in time.
std::unique_ptr<VariableSession> DeviceSessionOverHost(
    std::unique_ptr<VariableSession> host, Device* device,
    DeviceStream* stream);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_SESSION_OVER_HOST_H_
