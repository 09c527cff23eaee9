// The coordinator: runs the job that a job file describes, on the cluster that
// TF_CONFIG names or, without one, in this process.

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/process/command_line.h"
#include "common/process/exit_code.h"
#include "common/process/task_options.h"
#include "common/process/version.h"
#include "common/train/job.h"
#include "common/train/run_summary.h"
#include "coordinator/job_strategy.h"
#include "coordinator/run_task.h"
#include "coordinator/task.h"
#include "proto/training_job.pb.h"

namespace {

muster::ProgramInfo Program() {
  return {
      .name = "coordinator",
      .summary =
          "Trains the model that a job file describes: creates its variables, "
          "hands steps to the workers, evaluates, and writes summary.json. On "
          "the cluster that TF_CONFIG names, or in this process alone.",
      .usage = "coordinator --job=FILE [--set name=value ...] [flags]",
      .examples =
          "  coordinator --job=examples/digits/digits.job\n"
          "  TF_CONFIG='{\"cluster\": {\"worker\": [\"h0:2222\"], \"ps\": "
          "[\"h1:2222\"]},\n"
          "              \"task\": {\"type\": \"chief\", \"index\": 0}}' "
          "coordinator --job=mnist.job\n",
      .flags = muster::TaskFlagNames(),
  };
}

std::string RunDir(const muster::TaskOptions& options) {
  if (!options.run_dir.empty()) return options.run_dir;
  return absl::StrCat(
      "runs/", std::filesystem::path(options.job_file).stem().string(), "-",
      absl::FormatTime("%Y%m%d-%H%M%S", absl::Now(), absl::LocalTimeZone()));
}

absl::Status CheckOptions(const muster::TaskOptions& options) {
  using muster::TaskType;
  const TaskType type = options.config.task.type;
  if (type != TaskType::kChief && !options.config.IsAlone()) {
    return absl::InvalidArgumentError(
        "this is the coordinator's executable, and TF_CONFIG makes this task " +
        options.config.task.ToString() + "; start worker or ps in its place");
  }
  if (options.job_file.empty()) {
    return absl::InvalidArgumentError("--job=FILE is missing: what to train");
  }
  return muster::ReadJobFile(options.job_file, options.settings,
                             RunDir(options))
      .status();
}

absl::Status Train(muster::Task& task) {
  const muster::TaskOptions& options = task.options();
  const std::string run_dir = RunDir(options);
  ASSIGN_OR_RETURN(
      const muster::proto::TrainingJob job,
      muster::ReadJobFile(options.job_file, options.settings, run_dir));
  return muster::RunJob(job, muster::JobStrategyFactory(&task),
                        {.job_file = options.job_file,
                         .run_dir = run_dir,
                         .seed = options.seed,
                         .muster_version = std::string(muster::kVersion)})
      .status();
}

}  // namespace

int main(int argc, char** argv) {
  return muster::RunTask(Program(), argc, argv, CheckOptions, Train);
}
