#include "common/learn/strategy/strategies/one_device_strategy.h"

#include <utility>

#include "absl/memory/memory.h"
#include "common/core/base/status_macros.h"
#include "common/learn/strategy/logical_devices.h"
#include "common/learn/strategy/replica_devices.h"
#include "common/learn/strategy/synchronous/local_replicas.h"
#include "common/learn/strategy/synchronous/mirrored_variable_store.h"
#include "common/learn/strategy/synchronous/replica_group.h"

namespace muster {

absl::StatusOr<std::unique_ptr<OneDeviceStrategy>> OneDeviceStrategy::Create(
    const OneDeviceStrategyOptions& options) {
  ASSIGN_OR_RETURN(const LogicalDevice device, ParseDevice(options.device));
  ASSIGN_OR_RETURN(ReplicaDevices devices, FindReplicaDevices({device}));
  ASSIGN_OR_RETURN(std::unique_ptr<ReplicaGroup> group, MakeLocalReplicas(1));
  Options general{
      .name = "one_device",
      .input = options.input,
      .intra_op_thread_count = ThreadsPerReplica(options.thread_count, 1),
      .devices = std::move(devices),
      .deterministic_micro_batches = options.deterministic_micro_batches};
  RETURN_IF_ERROR(CheckOptions(*group, general));
  ASSIGN_OR_RETURN(MirroredVariableStore::Copies variables,
                   MakeVariables(*group, general));
  return absl::WrapUnique(new OneDeviceStrategy(
      std::move(group), std::move(general), std::move(variables)));
}

}  // namespace muster
