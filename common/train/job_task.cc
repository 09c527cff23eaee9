#include "common/train/job_task.h"

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/process/version.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

std::string RunDir(const TaskOptions& options) {
  if (!options.run_dir.empty()) return options.run_dir;
  return absl::StrCat(
      "runs/", std::filesystem::path(options.job_file).stem().string(), "-",
      absl::FormatTime("%Y%m%d-%H%M%S", absl::Now(), absl::LocalTimeZone()));
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
  return RunJob(job, make_strategy,
                {.job_file = options.job_file,
                 .run_dir = run_dir,
                 .seed = options.seed,
                 .muster_version = std::string(kVersion)})
      .status();
}

}  // namespace muster
