#ifndef COMMON_NET_COLLECTIVES_ON_DEVICE_STAGED_COMMUNICATOR_H_
#define COMMON_NET_COLLECTIVES_ON_DEVICE_STAGED_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/core/device/device.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/device_communicator.h"

namespace muster {

// Gives a replica on a GPU the collectives of a communicator of the host: for
// transports that reach memory of the host only. Other ranks may be on CPUs.
//
// A Start...() waits for `ready`, copies its memory to the host, runs the
// collective of `host`, and enqueues the copy back; so it waits for the device.
// Memory of AllocateOnDevice() has a stage from Allocate() of `host`, so
// that ranks on CPUs call Allocate() with the same sizes.
//
// `host` and `device` are borrowed. Errors are those of `host` and of the
// device.
absl::StatusOr<std::unique_ptr<DeviceCommunicator>> StageOverHost(
    Communicator* host, Device* device);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_ON_DEVICE_STAGED_COMMUNICATOR_H_
