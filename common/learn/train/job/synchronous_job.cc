#include "common/learn/train/job/synchronous_job.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/learn/strategy/multi_worker_mirrored_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/job/local_strategies.h"
#include "common/net/process/task_options.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using proto::JobStrategy;

absl::StatusOr<std::unique_ptr<Strategy>> BuildMultiWorkerMirrored(
    const proto::TrainingJob& job, const std::string& agreed_text, Task& task) {
  ASSIGN_OR_RETURN(MultiWorkerMirroredStrategyOptions options,
                   BuildMultiWorkerMirroredOptions(job));
  options.agreed.emplace_back("job file", agreed_text);
  return MultiWorkerMirroredStrategy::Create(task, options);
}

}  // namespace

StrategyFactory SynchronousStrategyFactory(Task* task,
                                           std::string agreed_text) {
  return [task,
          agreed_text = std::move(agreed_text)](const proto::TrainingJob& job)
             -> absl::StatusOr<std::unique_ptr<Strategy>> {
    const TaskOptions& options = task->options();
    if (options.config.IsAlone()) {
      return BuildLocalStrategy(job, options.thread_count);
    }
    const JobStrategy& strategy = job.strategy();
    switch (strategy.kind_case()) {
      case JobStrategy::KIND_NOT_SET:
      case JobStrategy::kMultiWorkerMirrored:
        return BuildMultiWorkerMirrored(job, agreed_text, *task);
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
