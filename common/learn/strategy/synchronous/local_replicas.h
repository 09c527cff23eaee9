#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_LOCAL_REPLICAS_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_LOCAL_REPLICAS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/learn/strategy/replica/cross_device_ops.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/net/collectives/communication_implementation.h"
#include "common/net/collectives/transports/transport.h"

namespace muster {

// How the replicas of one process communicate.
struct LocalCommunication {
  // NCCL: over it. Others: over the memory of the process, where gradients are.
  CommunicationImplementation implementation =
      CommunicationImplementation::kAuto;
  // Has the devices of the replicas, for NCCL.
  TransportSettings transports = {};
  // How values are reduced; null: as the communicators do.
  std::shared_ptr<const CrossDeviceOps> ops = nullptr;
};

// A group within this process, which can be recreated after an error.
//   kInvalidArgument  as CreateLocalGroup()
//   kUnimplemented    NCCL is asked for, and cannot connect the replicas; says
//                     what is missing on which
//   kUnavailable      as ConnectNccl()
absl::StatusOr<std::unique_ptr<ReplicaGroup>> MakeLocalReplicas(
    int replica_count,
    const LocalCommunication& communication = LocalCommunication());

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_LOCAL_REPLICAS_H_
