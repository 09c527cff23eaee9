#ifndef COMMON_LEARN_TRAIN_JOB_JOB_TASK_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_TASK_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/learn/train/job/job.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/net/process/task.h"
#include "common/net/process/task_options.h"

// Runs --job in the stock executables: any of them can be the one that
// trains.
namespace muster {

// Reads --job, before anything is started. Results go to --run_dir, or else to
// a new folder under runs/. With --check_config the whole job is checked, as
// CheckJob() does; with --nocheck_data too without what needs its data and
// folders, for jobs that run on other machines.
//   kInvalidArgument  there is no --job
//   others            as ResolvedJob::FromFile() and CheckJob()
absl::StatusOr<ResolvedJob> ResolveJob(const TaskOptions& options);

// Runs the job. A folder that --run_dir does not name is removed again if the
// job is invalid and has written nothing. A task of type evaluator scores the
// job's checkpoints. All others of a job train into a folder that no other job
// trains into meanwhile.
//   kFailedPrecondition  another process trains into run_dir (TakeRunLease()),
//                        with ExitCode::kUsage
//   kAborted             another process has taken it over
//   kInvalidArgument  its run_dir holds the results of a run that is over, with
//                     ExitCode::kUsage
//   others            as RunJob() or EvaluateJob()
absl::Status TrainJob(Task& task, ResolvedJob resolved,
                      const StrategyFactory& make_strategy);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_TASK_H_
