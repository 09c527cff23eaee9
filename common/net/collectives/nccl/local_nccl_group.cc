#include "common/net/collectives/nccl/local_nccl_group.h"

#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/nccl/nccl_communicator.h"
#include "common/net/collectives/shm/shared_memory_group.h"

namespace muster {

absl::StatusOr<nccl::UniqueId> GenerateNcclId(const nccl::Api& api) {
  nccl::UniqueId id;
  const nccl::Result result = api.ncclGetUniqueId(&id);
  if (result == nccl::kSuccess) return id;
  return absl::UnavailableError(absl::StrCat("ncclGetUniqueId: NCCL says ",
                                             api.ncclGetErrorString(result),
                                             " (", result, ")"));
}

absl::StatusOr<std::vector<std::unique_ptr<DeviceCommunicator>>>
CreateLocalNcclGroup(const nccl::Api* api, absl::Span<Device* const> devices,
                     uint64_t generation, absl::Time deadline) {
  ASSIGN_OR_RETURN(const nccl::UniqueId id, GenerateNcclId(*api));
  ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Communicator>> controls,
                   CreateLocalGroup(static_cast<int>(devices.size()),
                                    {.generation = generation}));
  std::vector<absl::StatusOr<std::unique_ptr<DeviceCommunicator>>> results(
      devices.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    threads.emplace_back([&, rank] {
      results[rank] = ConnectNccl(api,
                                  {.id = id,
                                   .device = devices[rank],
                                   .control = std::move(controls[rank])},
                                  deadline);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::unique_ptr<DeviceCommunicator>> group;
  for (auto& result : results) {
    RETURN_IF_ERROR(result.status());
    group.push_back(*std::move(result));
  }
  return group;
}

}  // namespace muster
