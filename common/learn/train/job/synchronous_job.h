#ifndef COMMON_LEARN_TRAIN_JOB_SYNCHRONOUS_JOB_H_
#define COMMON_LEARN_TRAIN_JOB_SYNCHRONOUS_JOB_H_

#include "common/learn/train/job/job.h"
#include "common/net/process/task.h"

namespace muster {

// A factory that knows all strategies but parameter_server. In a cluster of
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

#endif  // COMMON_LEARN_TRAIN_JOB_SYNCHRONOUS_JOB_H_
