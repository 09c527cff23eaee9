#ifndef COMMON_NET_COLLECTIVES_ON_DEVICE_LOCAL_DEVICE_GROUP_H_
#define COMMON_NET_COLLECTIVES_ON_DEVICE_LOCAL_DEVICE_GROUP_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/core/device/device.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/device_communicator.h"

namespace muster {

// Where an all-reduce of GPUs adds.
enum class DeviceReduction {
  // Every rank reduces a part of the elements, and copies the other parts. If
  // all ranks share one GPU, one kernel reduces everything, and writes it to
  // the memory of all.
  kByParts,
  // The first GPU reduces everything; the others copy the result.
  kToOneDevice,
  // The first GPU of each half of the ranks reduces that half, then the first
  // one the two results; the others copy it. With fewer than four ranks as
  // kToOneDevice.
  kHierarchical,
};

inline constexpr int kLocalDeviceRanksMax = 16;

// A group of threads of this process, one communicator for each of `devices`,
// by rank. A GPU may occur several times, as itself or as several logical
// devices. `host` has a communicator of the same ranks for each: it serves the
// functions of Communicator, and ranks wait for each other over it. The devices
// are borrowed.
//
// Ranks reduce in memory of the devices, in rank order (in halves with
// kHierarchical), with the bits of the host's Reduce(). Memory of another GPU
// is copied over the connection that the driver chooses; that of the same GPU
// is read where it is. Memory passed to a Start...() is in use until `done`.
//
// A call waits for the other ranks, and not for the devices. The thread of the
// rank that comes last enqueues the work of all.
//
//   kInvalidArgument  there are more than kLocalDeviceRanksMax devices
//   others            of the devices
absl::StatusOr<std::vector<std::unique_ptr<DeviceCommunicator>>>
CreateLocalDeviceGroup(absl::Span<Device* const> devices,
                       std::vector<std::unique_ptr<Communicator>> host,
                       DeviceReduction reduction);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_ON_DEVICE_LOCAL_DEVICE_GROUP_H_
