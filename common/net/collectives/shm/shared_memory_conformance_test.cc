#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/core/base/status_macros.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/conformance/backend.h"
#include "common/net/collectives/shm/group_options.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "common/net/rpc/local_endpoint.h"

namespace muster {
namespace {

CommunicatorBackend AmongThreads(const char* name, SharedMemoryTuning tuning) {
  return {name, [tuning](int size) {
            return CreateLocalGroup(size, {.generation = 5, .tuning = tuning});
          }};
}

// Ranks of this process that connect as ranks in separate processes would.
CommunicatorBackend AmongProcesses(const char* name,
                                   SharedMemoryTuning tuning) {
  return {name, [tuning](int size) -> absl::StatusOr<RankGroup> {
            std::vector<std::unique_ptr<LocalEndpoint>> endpoints(size);
            SharedMemoryGroupOptions options = {.size = size,
                                                .generation = 5,
                                                .token = "conformance",
                                                .tuning = tuning};
            for (auto& endpoint : endpoints) {
              ASSIGN_OR_RETURN(endpoint, LocalEndpoint::Listen());
              options.addresses.push_back(endpoint->address());
            }
            return MakeRanks(size, [&](int rank) {
              SharedMemoryGroupOptions own = options;
              own.rank = rank;
              return ConnectSharedMemoryGroup(std::move(endpoints[rank]), own);
            });
          }};
}

const BackendRegistration kRegistrations[] = {
    BackendRegistration(AmongThreads("Threads", {})),
    BackendRegistration(AmongThreads("ThreadsDirect", {0, 0})),
    BackendRegistration(AmongProcesses("SharedMemory", {})),
    BackendRegistration(AmongProcesses("SharedMemoryReading", {0, 0})),
};

}  // namespace
}  // namespace muster
