#include "common/learn/strategy/synchronous/local_replicas.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/core/base/status_macros.h"
#include "common/learn/strategy/synchronous/cross_device_communicator.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/shm/shared_memory_group.h"

namespace muster {

absl::StatusOr<std::unique_ptr<ReplicaGroup>> MakeLocalReplicas(
    int replica_count, std::shared_ptr<const CrossDeviceOps> ops) {
  auto make = [replica_count, ops = std::move(ops),
               generation = uint64_t{0}]() mutable
      -> absl::StatusOr<ReplicaGroup::Communicators> {
    LocalGroupOptions options;
    options.generation = ++generation;
    ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Communicator>> made,
                     CreateLocalGroup(replica_count, options));
    if (ops != nullptr) made = ReduceBy(ops, std::move(made));
    ReplicaGroup::Communicators communicators;
    for (std::unique_ptr<Communicator>& communicator : made) {
      communicators.push_back(std::move(communicator));
    }
    return communicators;
  };
  ASSIGN_OR_RETURN(ReplicaGroup::Communicators communicators, make());
  return ReplicaGroup::Create(std::move(communicators),
                              {.renew = std::move(make)});
}

}  // namespace muster
