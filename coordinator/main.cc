// The coordinator: runs the job that a job file describes, on the cluster that
// TF_CONFIG names or, without one, in this process.

#include <optional>

#include "absl/status/status.h"
#include "common/core/base/status_macros.h"
#include "common/learn/train/job/job.h"
#include "common/learn/train/job/job_task.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/program_info.h"
#include "common/net/process/task.h"
#include "common/net/process/task_options.h"
#include "coordinator/job_strategy.h"
#include "coordinator/run_task.h"

namespace {

muster::ProgramInfo Program() {
  return {
      .name = "coordinator",
      .summary =
          "Trains the model that a job file describes: creates its variables, "
          "hands steps to the workers, evaluates, and writes summary.json. On "
          "the cluster that TF_CONFIG names, or in this process alone. As an "
          "evaluator: scores every checkpoint that the training writes.",
      .usage = "coordinator --job=FILE [--set name=value ...] [flags]",
      .examples =
          "  coordinator --job=examples/digits/digits.job\n"
          "  TF_CONFIG='{\"cluster\": {\"worker\": [\"h0:2222\"], \"ps\": "
          "[\"h1:2222\"]},\n"
          "              \"task\": {\"type\": \"chief\", \"index\": 0}}' "
          "coordinator --job=mnist.job\n",
      .topics = muster::TaskFlags(muster::FlagUsers::kCoordinator),
      .flags_of_others =
          muster::FlagsOfOtherTasks(muster::FlagUsers::kCoordinator),
      .settings = std::nullopt,
  };
}

absl::Status CheckTask(const muster::TaskOptions& options) {
  using muster::TaskType;
  const TaskType type = options.config.task.type;
  if (type != TaskType::kChief && !options.config.IsAlone()) {
    return absl::InvalidArgumentError(
        "this is the coordinator's executable, and TF_CONFIG makes this task " +
        options.config.task.ToString() + "; start worker or ps in its place");
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  muster::ResolvedJob job;
  const auto check = [&](const muster::TaskOptions& options) -> absl::Status {
    RETURN_IF_ERROR(CheckTask(options));
    // What is asked is the cluster.
    if (muster::CheckConfigWanted() && options.job_file.empty()) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(job, muster::ResolveJob(options));
    return absl::OkStatus();
  };
  const auto train = [&](muster::Task& task) {
    return muster::TrainJob(task, job,
                            muster::JobStrategyFactory(&task, job.agreed_text));
  };
  return muster::RunTask(Program(), argc, argv, check, train);
}
