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
  // Once, as ranks on CPUs do.
  kWhole,
  // All-reduces and broadcasts: once for each kStagedChunkBytes. All ranks are
  // staged like that.
  kInChunks,
};

// A chunk takes about 0.1 ms to copy over PCI Express, and the host longer to
// reduce: more than ranks need to wait for each other. What cannot overlap, the
// first copy to the host and the last one back, is a small part of large packs.
inline constexpr int64_t kStagedChunkBytes = int64_t{4} << 20;

// Gives a replica on a GPU the collectives of a communicator of the host: for
// transports that reach memory of the host only. Other ranks may be on CPUs.
//
// A Start...() waits for `ready`, copies its memory to the host, runs the
// collective of `host`, and enqueues the copy back; so it waits for the device.
// With kInChunks, a chunk is reduced while the next one is copied to the host
// and the one before is copied back. Memory of AllocateOnDevice() has a stage
// from Allocate() of `host`, so that ranks on CPUs call Allocate() with the
// same sizes.
//
// `host` and `device` are borrowed. Errors are those of `host` and of the
// device.
absl::StatusOr<std::unique_ptr<DeviceCommunicator>> StageOverHost(
    Communicator* host, Device* device, HostCalls host_calls);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_ON_DEVICE_STAGED_COMMUNICATOR_H_
