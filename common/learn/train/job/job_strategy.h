#ifndef COMMON_LEARN_TRAIN_JOB_JOB_STRATEGY_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_STRATEGY_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/learn/strategy/strategies/multi_worker_mirrored_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/job/job.h"
#include "common/net/process/task.h"

namespace muster {

namespace proto {
class JobStrategy;
class TrainingJob;
}  // namespace proto

// The strategies that a job file can ask for and that need no cluster.

// Checks a job's strategy before it is made.
//   kInvalidArgument  names the field
//   kUnimplemented    a device or an implementation that this build lacks
absl::Status CheckJobStrategy(const proto::JobStrategy& strategy);

// Returns a job's options of multi_worker_mirrored, which it need not name.
//   as CheckJobStrategy()
absl::StatusOr<MultiWorkerMirroredStrategyOptions>
BuildMultiWorkerMirroredOptions(const proto::TrainingJob& job);

// `thread_count` is what this process may use where the job says nothing about
// threads, for all replicas together; 0 is all cores. multi_worker_mirrored is
// made as one worker.
//   kInvalidArgument  as CheckJobStrategy(); or the job asks for parameter
//                     servers
//   kUnimplemented    as CheckJobStrategy()
absl::StatusOr<std::unique_ptr<Strategy>> BuildLocalStrategy(
    const proto::TrainingJob& job, int thread_count);

// Returns a factory of all strategies except parameter_server. In a cluster of
// workers a job that names none trains under multi_worker_mirrored, and the
// workers refuse each other unless their jobs are the same
// (ResolvedJob::agreed()). Without a cluster: as DefaultStrategyFactory().
//
// `task` is borrowed by the factory.
//   kInvalidArgument  the job asks for a strategy of one process, and the
//                     cluster has several
//   as MultiWorkerMirroredStrategy::Create()
StrategyFactory SynchronousStrategyFactory(Task* task);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_STRATEGY_H_
