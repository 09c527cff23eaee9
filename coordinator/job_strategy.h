#ifndef COORDINATOR_JOB_STRATEGY_H_
#define COORDINATOR_JOB_STRATEGY_H_

#include "common/learn/train/job/job.h"
#include "common/net/process/task.h"

namespace muster {

// Returns a factory for the strategy that a job file names. If the job file
// names none, the cluster of the task decides: parameter servers if there are
// any, otherwise synchronous training. `task` is borrowed while the factory is
// used.
StrategyFactory JobStrategyFactory(Task* task);

}  // namespace muster

#endif  // COORDINATOR_JOB_STRATEGY_H_
