#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_LOCAL_REPLICAS_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_LOCAL_REPLICAS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/learn/strategy/replica/cross_device_ops.h"
#include "common/learn/strategy/synchronous/replica_group.h"

namespace muster {

// A group within this process, which can be recreated after an error. Its
// reductions are those of `ops`; null: those of CreateLocalGroup().
//   kInvalidArgument  as CreateLocalGroup()
absl::StatusOr<std::unique_ptr<ReplicaGroup>> MakeLocalReplicas(
    int replica_count, std::shared_ptr<const CrossDeviceOps> ops = nullptr);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_LOCAL_REPLICAS_H_
