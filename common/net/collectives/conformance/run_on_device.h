#ifndef COMMON_NET_COLLECTIVES_CONFORMANCE_RUN_ON_DEVICE_H_
#define COMMON_NET_COLLECTIVES_CONFORMANCE_RUN_ON_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/device_communicator.h"

namespace muster {

// Returns a communicator for the suite that copies its arguments to the device
// and calls the functions of DeviceCommunicator. `borrowed`, if given, is the
// communicator that `communicator` borrows; the result owns both.
absl::StatusOr<std::unique_ptr<Communicator>> RunOnDevice(
    std::unique_ptr<DeviceCommunicator> communicator,
    std::unique_ptr<Communicator> borrowed = nullptr);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_CONFORMANCE_RUN_ON_DEVICE_H_
