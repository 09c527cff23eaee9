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
  // NCCL: over it. RING: replicas on GPUs over the memory of the GPUs, others
  // over that of the process. AUTO: NCCL if all replicas are on GPUs that it
  // can connect, as RING otherwise.
  CommunicationImplementation implementation =
      CommunicationImplementation::kAuto;
  // Has the devices of the replicas.
  TransportSettings transports = {};
  // Gradients are on the host, although replicas are on GPUs: AUTO does not
  // choose NCCL.
  bool gradients_on_host = false;
  // How values are reduced; null: as the communicators do. Not together with
  // NCCL.
  std::shared_ptr<const CrossDeviceOps> ops = nullptr;
};

// A group within this process, which can be recreated after an error. Logs over
// what replicas on GPUs communicate, and why.
//   kInvalidArgument  as CreateLocalGroup() and CreateLocalDeviceGroup(), or
//                     both NCCL and `ops` are asked for
//   kUnimplemented    NCCL is asked for, and cannot connect the replicas; says
//                     what is missing on which
//   kUnavailable      as ConnectNccl()
absl::StatusOr<std::unique_ptr<ReplicaGroup>> MakeLocalReplicas(
    int replica_count,
    const LocalCommunication& communication = LocalCommunication());

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_LOCAL_REPLICAS_H_
