#include "common/learn/strategy/strategies/central_storage_strategy.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/learn/strategy/logical_devices.h"
#include "common/learn/strategy/replica_devices.h"
#include "common/learn/strategy/synchronous/local_replicas.h"
#include "common/learn/strategy/synchronous/replica_group.h"

namespace muster {

absl::StatusOr<std::unique_ptr<CentralStorageStrategy>>
CentralStorageStrategy::Create(const CentralStorageStrategyOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   NamedOrAllDevices(options.compute_devices));
  ASSIGN_OR_RETURN(const std::vector<LogicalDevice> devices,
                   ParseDevices(names));
  ASSIGN_OR_RETURN(const LogicalDevice parameter_device,
                   ParseDevice(options.parameter_device));
  if (parameter_device.kind != kCpuKind) {
    return absl::UnimplementedError(absl::StrCat(
        "parameter_device is \"", options.parameter_device,
        "\"; central storage keeps variables on the host: expected \"cpu:0\""));
  }
  ASSIGN_OR_RETURN(ReplicaDevices replica_devices, FindReplicaDevices(devices));
  const int replica_count = static_cast<int>(devices.size());
  ASSIGN_OR_RETURN(
      std::unique_ptr<ReplicaGroup> group,
      MakeLocalReplicas(replica_count,
                        {.implementation = options.communication.implementation,
                         .transports = {.devices = replica_devices},
                         .gradients_on_host = true}));
  Options general{
      .name = "central_storage",
      .communication = options.communication,
      .shares_variables = true,
      .input = options.input,
      .intra_op_thread_count =
          ThreadsPerReplica(options.thread_count, replica_count),
      .devices = std::move(replica_devices),
      .deterministic_micro_batches = options.deterministic_micro_batches};
  RETURN_IF_ERROR(CheckOptions(*group, general));
  return absl::WrapUnique(
      new CentralStorageStrategy(std::move(group), std::move(general)));
}

}  // namespace muster
