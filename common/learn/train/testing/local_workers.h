#ifndef COMMON_LEARN_TRAIN_TESTING_LOCAL_WORKERS_H_
#define COMMON_LEARN_TRAIN_TESTING_LOCAL_WORKERS_H_

#include <functional>

#include "common/learn/strategy/strategies/synchronous_strategy.h"

namespace muster {

// Runs `work` as several workers that train in sync, each on a thread with its
// own strategy. Returns when all have ended.
void RunLocalWorkers(
    int worker_count, int replicas_per_worker,
    SynchronousStrategy::Options options,
    const std::function<void(int worker, SynchronousStrategy&)>& work);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_TESTING_LOCAL_WORKERS_H_
