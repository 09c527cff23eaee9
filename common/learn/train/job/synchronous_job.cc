#include "common/learn/train/job/synchronous_job.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/learn/strategy/strategies/multi_worker_mirrored_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/job/job_canonical.h"
#include "common/learn/train/job/job_strategy.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/net/process/task_options.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using proto::JobStrategy;

absl::StatusOr<std::unique_ptr<Strategy>> BuildMultiWorkerMirrored(
    const ResolvedJob& job, Task& task) {
  ASSIGN_OR_RETURN(MultiWorkerMirroredStrategyOptions options,
                   BuildMultiWorkerMirroredOptions(job.job()));
  options.agreed.push_back({.name = "job file",
                            .text = job.agreed().text,
                            .lines = job.agreed().lines});
  return MultiWorkerMirroredStrategy::Create(task, options);
}

}  // namespace

StrategyFactory SynchronousStrategyFactory(Task* task) {
  return [task](const ResolvedJob& job)
             -> absl::StatusOr<std::unique_ptr<Strategy>> {
    const TaskOptions& options = task->options();
    if (options.config.IsAlone()) {
      return BuildLocalStrategy(job.job(), options.thread_count);
    }
    const JobStrategy& strategy = job.job().strategy();
    switch (strategy.kind_case()) {
      case JobStrategy::KIND_NOT_SET:
      case JobStrategy::kMultiWorkerMirrored:
        return BuildMultiWorkerMirrored(job, *task);
      case JobStrategy::kParameterServer:
        return absl::InvalidArgumentError(absl::StrCat(
            "the job wants parameter servers, and this cluster has none: ",
            options.config.source, "'s \"cluster\" needs a \"ps\" list. Or ",
            "take `strategy` out of the job file, and the workers train in ",
            "sync"));
      default:
        return absl::InvalidArgumentError(
            "the job asks for a strategy of one process, and this cluster has "
            "several, each of which would train a model of its own: take "
            "`strategy` out of the job file or make it multi_worker_mirrored, "
            "or start one process without TF_CONFIG");
    }
  };
}

}  // namespace muster
