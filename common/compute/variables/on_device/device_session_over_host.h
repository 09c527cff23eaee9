#ifndef COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_SESSION_OVER_HOST_H_
#define COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_SESSION_OVER_HOST_H_

#include <memory>

#include "common/compute/variables/variable_session.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"

namespace muster {

// Lets a step on a device use any store of the host, such as a
// LocalVariableStore or parameter servers. Returns a session over `host`. Its
// Read() and Gather() return values in the memory of the device. Its Update()
// takes values and indices in the memory of the device or of the host.
//
// Enqueues work on `stream`, the stream of the step. Copies gradients to pinned
// memory after the work enqueued so far, and passes them on in order: in a
// later Update() that finds the copy complete, before a read of the variable,
// or in Commit(). So pushes to parameter servers begin while the device
// computes.
//
// `device` and `stream` are borrowed and outlive the session. Errors are also
// those of DeviceStream; kDeadlineExceeded if the device does not finish the
// step in time.
std::unique_ptr<VariableSession> DeviceSessionOverHost(
    std::unique_ptr<VariableSession> host, Device* device,
    DeviceStream* stream);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_SESSION_OVER_HOST_H_
