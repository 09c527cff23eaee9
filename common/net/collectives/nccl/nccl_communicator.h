#ifndef COMMON_NET_COLLECTIVES_NCCL_NCCL_COMMUNICATOR_H_
#define COMMON_NET_COLLECTIVES_NCCL_NCCL_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/device/device.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/device_communicator.h"
#include "common/net/collectives/nccl/nccl_api.h"

namespace muster {

// One rank of a group whose replicas are on GPUs.
struct NcclGroup {
  // Drawn by rank 0 (ncclGetUniqueId()) for this group only.
  nccl::UniqueId id;
  Device* device = nullptr;  // Borrowed, outlives the communicator.
  // The same ranks over another transport: they agree over it before each
  // collective, and ask each other over it which are missing after an error.
  // Its rank, size and generation are those of the group.
  std::unique_ptr<Communicator> control;
  // The multiprocessors that NCCL may occupy; 0: as it likes.
  int ctas_max = 0;
};

// Connects with the other ranks, which do the same at about the same time.
// `api` is borrowed and lives as long as the process.
//
// Beyond what Communicator and DeviceCommunicator promise:
// - A collective is launched when all ranks have agreed about it over
//   `control`. Ranks therefore launch the same collectives in the same order,
//   and NCCL waits for no rank that has not come.
// - The timeout of a call counts twice: until all ranks have come, and then
//   until NCCL is done.
// - Values are combined in the order of NCCL's algorithm, which depends on the
//   GPUs' connections and on NCCL's version and settings, too: the bits of a
//   sum are those of every run on the same machines. kMean of floating dtypes
//   is NCCL's ncclAvg, which multiplies by 1/size before it adds.
// - Memory of the host passes through memory of the device. Allocate() returns
//   pinned memory, which is copied fastest.
//
//   kDeadlineExceeded  names the ranks that have not come
//   kInvalidArgument   ranks have ids of different groups; names one
//   kUnavailable       NCCL could not connect; says what NCCL says
//   others             as Communicator, of `control`
absl::StatusOr<std::unique_ptr<DeviceCommunicator>> ConnectNccl(
    const nccl::Api* api, NcclGroup group, absl::Time deadline);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_NCCL_NCCL_COMMUNICATOR_H_
