#ifndef COMMON_LEARN_STRATEGY_INPUT_SUB_BATCHES_H_
#define COMMON_LEARN_STRATEGY_INPUT_SUB_BATCHES_H_

#include <memory>

#include "common/dataset/dataset.h"
#include "common/learn/strategy/input/replica_batch.h"
#include "common/learn/strategy/input/sharding_plan.h"

namespace muster {

// Divides the elements of `input` as the plan says, on the calling thread.
std::unique_ptr<DistributedIterator> DivideAmongReplicas(
    std::unique_ptr<DatasetIterator> input, ShardingPlan plan);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_INPUT_SUB_BATCHES_H_
