#ifndef COMMON_LEARN_TRAIN_JOB_JOB_TASK_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_TASK_H_

#include "absl/status/status.h"
#include "common/learn/train/job/job.h"
#include "common/net/process/task.h"
#include "common/net/process/task_options.h"

// What the stock executables do with --job: any of them can be the one that
// trains.
namespace muster {

// That there is a job file and that it makes sense; before anything is started.
//   as ReadJobFile()
absl::Status CheckJobFile(const TaskOptions& options);

// Reads the job file and runs it. Results go to --run_dir, or else to a new
// folder under runs/. A task of type evaluator scores the job's checkpoints.
//   as ReadJobFile(), and RunJob() or EvaluateJob()
absl::Status TrainJobFile(Task& task, const StrategyFactory& make_strategy);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_TASK_H_
