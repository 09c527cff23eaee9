#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_LOCAL_REPLICAS_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_LOCAL_REPLICAS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/learn/strategy/cross_device/cross_device_ops.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/net/collectives/communication_implementation.h"
#include "common/net/collectives/transports/transport.h"

namespace muster {

// How the replicas of one process communicate.
struct LocalCommunication {
  // NCCL: over NCCL. RING: replicas on GPUs over the memory of the GPUs, other
  // replicas over the memory of the process. AUTO: as NCCL if all replicas are
  // on GPUs that NCCL can connect, otherwise as RING.
  CommunicationImplementation implementation =
      CommunicationImplementation::kAuto;
  // Contains the devices of the replicas.
  TransportSettings transports = {};
  // True if gradients are on the host although replicas are on GPUs. Then AUTO
  // does not choose NCCL.
  bool gradients_on_host = false;
  // How values are reduced; if null, the communicators decide. Must be null
  // with NCCL.
  std::shared_ptr<const CrossDeviceOps> ops = nullptr;
};

// Returns a group within this process that can be recreated after an error.
// Logs the transport of replicas on GPUs and the reason for it.
//   kInvalidArgument  as CreateLocalGroup() and CreateLocalDeviceGroup(), or
//                     both NCCL and `ops` are requested
//   kUnimplemented    NCCL is requested and cannot connect the replicas; names
//                     the replica and what it lacks
//   kUnavailable      as ConnectNccl()
absl::StatusOr<std::unique_ptr<ReplicaGroup>> MakeLocalReplicas(
    int replica_count,
    const LocalCommunication& communication = LocalCommunication());

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_LOCAL_REPLICAS_H_
