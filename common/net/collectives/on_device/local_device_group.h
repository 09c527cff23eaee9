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

// Which GPUs reduce in an all-reduce.
enum class DeviceReduction {
  // Every rank reduces a part of the elements and copies the other parts. If
  // all ranks share one GPU, one kernel reduces all elements and writes the
  // result to every rank's memory.
  kByParts,
  // The first GPU reduces all elements. The others copy the result.
  kToOneDevice,
  // The first GPU of each half of the ranks reduces the values of that half.
  // The first GPU then reduces the two results, and the others copy the result.
  // With fewer than four ranks, the same as kToOneDevice.
  kHierarchical,
};

inline constexpr int kLocalDeviceRanksMax = 16;

// Creates a group of threads of this process, with one communicator for each of
// `devices`, by rank. A GPU may occur several times, as the same device or as
// several logical devices. `host` has a communicator of the host for each rank.
// It implements the functions of Communicator, and ranks wait for each other
// over it. The devices are borrowed.
//
// Ranks reduce in memory of the devices, in rank order (in halves with
// kHierarchical). The result has the same bits as the host's Reduce(). Memory
// of another GPU is copied over the connection that the driver chooses. Memory
// of the same GPU is read without a copy. Memory passed to a Start...() is in
// use until `done`.
//
// A call waits for the other ranks, but not for the devices. The thread of the
// rank that arrives last enqueues the work of all ranks.
//
//   kInvalidArgument  there are more than kLocalDeviceRanksMax devices
//   others            errors of the devices
absl::StatusOr<std::vector<std::unique_ptr<DeviceCommunicator>>>
CreateLocalDeviceGroup(absl::Span<Device* const> devices,
                       std::vector<std::unique_ptr<Communicator>> host,
                       DeviceReduction reduction);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_ON_DEVICE_LOCAL_DEVICE_GROUP_H_
