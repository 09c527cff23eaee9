#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_CROSS_DEVICE_COMMUNICATOR_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_CROSS_DEVICE_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "common/learn/strategy/cross_device/cross_device_ops.h"
#include "common/net/collectives/communicator.h"

namespace muster {

// Returns communicators, by rank, whose AllReduce() and ReduceScatter() combine
// the buffers of all ranks by `ops`. `inner`, a group of all ranks in this
// process as CreateLocalGroup() returns it, runs all other collectives. Rank 0
// combines while the others wait.
std::vector<std::unique_ptr<Communicator>> ReduceBy(
    std::shared_ptr<const CrossDeviceOps> ops,
    std::vector<std::unique_ptr<Communicator>> inner);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_CROSS_DEVICE_COMMUNICATOR_H_
