#ifndef COMMON_NET_COLLECTIVES_ON_DEVICE_STAGED_COMMUNICATOR_H_
#define COMMON_NET_COLLECTIVES_ON_DEVICE_STAGED_COMMUNICATOR_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/core/device/device.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/device_communicator.h"

namespace muster {

// How a staged collective calls the communicator of the host.
enum class HostCalls {
  // Once per collective, as ranks on CPUs do.
  kWhole,
  // Once for each kStagedChunkBytes in all-reduces and broadcasts. All ranks
  // must be staged in this way.
  kInChunks,
};

// A chunk takes about 0.1 ms to copy over PCI Express, and longer to reduce on
// the host. This is more than ranks take to synchronize. The copies that cannot
// overlap with others, the first one to the host and the last one back, are a
// small part of a large pack.
inline constexpr int64_t kStagedChunkBytes = int64_t{4} << 20;

// Returns a communicator for a replica on a GPU that uses the collectives of a
// communicator of the host, for transports that support only memory of the
// host. Other ranks may be on CPUs.
//
// A Start...() waits for `ready`, copies the buffer to the host, runs the
// collective of `host`, and enqueues the copy back. It therefore waits for the
// device. With kInChunks, a chunk is reduced while the next one is copied to
// the host and the previous one is copied back. AllocateOnDevice() allocates a
// stage with Allocate() of `host`, so ranks on CPUs must call Allocate() with
// the same sizes.
//
// `host` and `device` are borrowed. Errors are those of `host` and of the
// device.
absl::StatusOr<std::unique_ptr<DeviceCommunicator>> StageOverHost(
    Communicator* host, Device* device, HostCalls host_calls);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_ON_DEVICE_STAGED_COMMUNICATOR_H_
