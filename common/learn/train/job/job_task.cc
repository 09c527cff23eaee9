#include "common/learn/train/job/job_task.h"

#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/learn/train/job/job_evaluator.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/version.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

std::string RunDir(const TaskOptions& options) {
  if (!options.run_dir.empty()) return options.run_dir;
  return absl::StrCat(
      "runs/", std::filesystem::path(options.job_file).stem().string(), "-",
      absl::FormatTime("%Y%m%d-%H%M%S", absl::Now(), absl::LocalTimeZone()));
}

// An evaluator that has a new folder of its own for a run directory would wait
// there for checkpoints that go elsewhere.
absl::Status CheckEvaluatorRunDir(const TaskOptions& options,
                                  const proto::TrainingJob& job,
                                  const std::string& run_dir) {
  const bool is_guess = options.run_dir.empty() &&
                        absl::StrContains(JobCheckpointDir(job), run_dir);
  if (!is_guess) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--run_dir is missing: the job's checkpoints are in ${run_dir}, and an "
      "evaluator has to be given that of the training");
}

absl::Status EvaluateJobFile(Task& task, const proto::TrainingJob& job,
                             RunJobOptions options) {
  RETURN_IF_ERROR(CheckEvaluatorRunDir(task.options(), job, options.run_dir));
  options.thread_count = task.options().thread_count;
  options.evaluator_timeout = task.options().evaluator_timeout;
  options.on_interruptible = [&task](std::function<void()> interrupt) {
    task.OnInterrupt(std::move(interrupt));
  };
  return EvaluateJob(job, options);
}

}  // namespace

absl::Status CheckJobFile(const TaskOptions& options) {
  if (options.job_file.empty()) {
    return absl::InvalidArgumentError("--job=FILE is missing: what to train");
  }
  return ReadJobFile(options.job_file, options.settings, RunDir(options))
      .status();
}

absl::Status TrainJobFile(Task& task, const StrategyFactory& make_strategy) {
  const TaskOptions& options = task.options();
  const std::string run_dir = RunDir(options);
  ASSIGN_OR_RETURN(const proto::TrainingJob job,
                   ReadJobFile(options.job_file, options.settings, run_dir));
  const RunJobOptions run_options{
      .job_file = options.job_file,
      .run_dir = run_dir,
      .is_chief = options.config.cluster.IsChief(options.config.task),
      .seed = options.seed,
      .muster_version = std::string(kVersion)};
  if (options.config.task.type == TaskType::kEvaluator) {
    return EvaluateJobFile(task, job, run_options);
  }
  return RunJob(job, make_strategy, run_options).status();
}

}  // namespace muster
