#include "common/learn/strategy/strategies/mirrored_strategy.h"

#include <utility>

#include "absl/memory/memory.h"
#include "common/core/base/status_macros.h"
#include "common/learn/strategy/logical_devices.h"
#include "common/learn/strategy/replica_devices.h"
#include "common/learn/strategy/synchronous/local_replicas.h"
#include "common/learn/strategy/synchronous/mirrored_variable_store.h"
#include "common/learn/strategy/synchronous/replica_group.h"

namespace muster {

absl::StatusOr<std::unique_ptr<MirroredStrategy>> MirroredStrategy::Create(
    const MirroredStrategyOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   NamedOrAllDevices(options.devices));
  ASSIGN_OR_RETURN(const std::vector<LogicalDevice> devices,
                   ParseDevices(names));
  ASSIGN_OR_RETURN(ReplicaDevices replica_devices, FindReplicaDevices(devices));
  const int replica_count = static_cast<int>(devices.size());
  ASSIGN_OR_RETURN(
      std::unique_ptr<ReplicaGroup> group,
      MakeLocalReplicas(replica_count,
                        {.implementation = options.communication.implementation,
                         .transports = {.devices = replica_devices},
                         .ops = options.cross_device_ops}));
  Options general{
      .name = "mirrored",
      .communication = options.communication,
      .input = options.input,
      .intra_op_thread_count =
          ThreadsPerReplica(options.thread_count, replica_count),
      .devices = std::move(replica_devices),
      .deterministic_micro_batches = options.deterministic_micro_batches,
      .cross_device_ops = options.cross_device_ops};
  RETURN_IF_ERROR(CheckOptions(*group, general));
  ASSIGN_OR_RETURN(MirroredVariableStore::Copies variables,
                   MakeVariables(*group, general));
  return absl::WrapUnique(new MirroredStrategy(
      std::move(group), std::move(general), std::move(variables)));
}

}  // namespace muster
