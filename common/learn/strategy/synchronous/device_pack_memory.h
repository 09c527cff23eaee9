#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_DEVICE_PACK_MEMORY_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_DEVICE_PACK_MEMORY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/device/stream.h"
#include "common/learn/strategy/synchronous/pack_memory.h"
#include "common/net/collectives/device_communicator.h"

namespace muster {

// Returns packs in the memory of the communicator's device. Contributions are
// enqueued on `stream`, on which the step runs; the communicator enqueues the
// collectives. Only the host items pass through host memory. Await() waits for
// them, and thereby for all packs. Work that is enqueued on `stream` after
// Combine() may use the sums.
//
// All pointers are borrowed.
//   errors  of the device
absl::StatusOr<std::unique_ptr<PackMemory>> MakeDevicePackMemory(
    const PackLayout* layout, DeviceCommunicator* communicator,
    DeviceStream* stream, absl::Duration timeout);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_DEVICE_PACK_MEMORY_H_
