#ifndef COMMON_NET_COLLECTIVES_NCCL_LOCAL_NCCL_GROUP_H_
#define COMMON_NET_COLLECTIVES_NCCL_LOCAL_NCCL_GROUP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/device/device.h"
#include "common/net/collectives/device_communicator.h"
#include "common/net/collectives/nccl/nccl_api.h"

namespace muster {

// Creates a group of threads of this process, with one communicator for each of
// `devices`, by rank. The ranks agree over memory of this process. `api` and
// the devices are borrowed and must outlive the communicators.
//   kUnavailable  NCCL generates no id
//   others        as for ConnectNccl() and CreateLocalGroup()
absl::StatusOr<std::vector<std::unique_ptr<DeviceCommunicator>>>
CreateLocalNcclGroup(const nccl::Api* api, absl::Span<Device* const> devices,
                     uint64_t generation, absl::Time deadline);

// Generates the id of a new group.
//   kUnavailable  NCCL generates no id; includes NCCL's message
absl::StatusOr<nccl::UniqueId> GenerateNcclId(const nccl::Api& api);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_NCCL_LOCAL_NCCL_GROUP_H_
