#include "common/net/collectives/device_communicator.h"

#include <algorithm>

namespace muster {

absl::StatusOr<std::shared_ptr<Buffer>> DeviceCommunicator::AllocateOnDevice(
    size_t size_bytes, const CollectiveCall& call) {
  return device().memory().Allocate(
      std::max(size_bytes, DeviceMemory::kAlignmentBytes),
      {.what = "collectives", .name = call.name});
}

}  // namespace muster
