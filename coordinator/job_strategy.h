#ifndef COORDINATOR_JOB_STRATEGY_H_
#define COORDINATOR_JOB_STRATEGY_H_

#include "common/learn/train/job/job.h"
#include "common/net/process/task.h"

namespace muster {

// Makes the strategy that a job file names, or, when it names none, the one
// that the task's cluster calls for: parameter servers if there are any.
// `task` is borrowed for as long as the factory is used.
StrategyFactory JobStrategyFactory(Task* task);

}  // namespace muster

#endif  // COORDINATOR_JOB_STRATEGY_H_
