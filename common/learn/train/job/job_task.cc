#include "common/learn/train/job/job_task.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/io/storage/disk.h"
#include "common/learn/train/callbacks/backup_and_restore.h"
#include "common/learn/train/job/job_callbacks.h"
#include "common/learn/train/job/job_check.h"
#include "common/learn/train/job/job_evaluator.h"
#include "common/learn/train/job/loss_cost.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/job_control.h"
#include "common/net/process/run_lease.h"
#include "common/net/process/task_log.h"
#include "common/net/process/version.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

constexpr int64_t kSummaryBytesMax = int64_t{256} << 20;

std::string RunDir(const TaskOptions& options) {
  if (!options.run_dir.empty()) return options.run_dir;
  return absl::StrCat(
      "runs/", std::filesystem::path(options.job_file).stem().string(), "-",
      absl::FormatTime("%Y%m%d-%H%M%S", absl::Now(), absl::LocalTimeZone()),
      "-", getpid());
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

bool KeepsBackups(const proto::TrainingJob& job) {
  return FindCallback<BackupAndRestoreOptions>(job, "backup_and_restore")
      .has_value();
}

// True if an operator has stopped the run of this summary.
bool WasStopped(const std::string& summary) {
  const absl::StatusOr<std::string> text =
      ReadFile(Disk::Real(), summary, kSummaryBytesMax);
  if (!text.ok()) return false;
  const auto json =
      nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const auto found = json.find("is_stopped");
  return found != json.end() && *found == true;
}

// A run that was interrupted continues in its folder; one that is over left
// results there, which the next would overwrite.
absl::Status CheckRunIsNotOver(const std::string& run_dir, bool keeps_backups) {
  const std::string summary = JoinPath(run_dir, "summary.json");
  if (!Disk::Real()->Open(summary).ok()) return absl::OkStatus();
  if (keeps_backups && WasStopped(summary)) return absl::OkStatus();
  return WithExitCode(
      absl::InvalidArgumentError(absl::StrCat(
          "--run_dir=", run_dir, " holds the results of a run that is over (",
          summary, "); choose another folder, or remove this one")),
      ExitCode::kUsage);
}

// For --check_config, whose output is for people.
absl::Status CheckConfiguredJob(const TaskOptions& options, ResolvedJob& job) {
  if (!CheckDataWanted()) {
    std::cout << "the data and folders are not checked (--nocheck_data)"
              << std::endl;
    return absl::OkStatus();
  }
  if (!options.run_dir.empty()) {
    RETURN_IF_ERROR(
        CheckRunIsNotOver(options.run_dir, KeepsBackups(job.job())));
  }
  return CheckJob(job, options.config, std::cout);
}

absl::Status EvaluateJobFile(Task& task, ResolvedJob resolved,
                             RunJobOptions options) {
  RETURN_IF_ERROR(
      CheckEvaluatorRunDir(task.options(), resolved.job(), options.run_dir));
  options.thread_count = task.options().thread_count;
  options.evaluator_timeout = task.options().evaluator_timeout;
  options.on_interruptible = [&task](std::function<void()> interrupt) {
    task.OnInterrupt(std::move(interrupt));
  };
  return EvaluateJob(std::move(resolved), options);
}

// Removes the folder of a run if nothing but logs is in it.
void RemoveIfNoResults(const std::string& run_dir) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const fs::path& path : fs::directory_iterator(run_dir, error)) {
    if (path.filename() != "logs") return;
  }
  if (!error) fs::remove_all(run_dir, error);
}

// Writes the log of this task beside the results in `run_dir`.
void WriteLogBesideResults(const TaskOptions& options, bool is_chief,
                           const std::string& run_dir) {
  WriteTaskLog(options.config, is_chief ? "coordinator" : "worker", run_dir);
  if (is_chief || !options.run_dir.empty()) return;
  LOG(INFO) << "the results and the logs of all tasks are in " << run_dir;
}

}  // namespace

absl::StatusOr<ResolvedJob> ResolveJob(const TaskOptions& options) {
  if (options.job_file.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--job=FILE is missing: what to train",
        options.config.source.empty()
            ? ". TF_CONFIG is not set either: export it, if this is to be a "
              "task of a cluster"
            : ""));
  }
  ASSIGN_OR_RETURN(ResolvedJob job,
                   ResolvedJob::FromFile(options.job_file, options.settings,
                                         RunDir(options)));
  if (CheckConfigWanted()) RETURN_IF_ERROR(CheckConfiguredJob(options, job));
  return job;
}

absl::Status TrainJob(Task& task, ResolvedJob resolved,
                      const StrategyFactory& make_strategy) {
  const TaskOptions& options = task.options();
  const bool is_chief = options.config.cluster.IsChief(options.config.task);
  RunJobOptions run_options{.job_file = resolved.file(),
                            .run_dir = resolved.run_dir(),
                            .is_chief = is_chief,
                            .seed = options.seed,
                            .muster_version = std::string(kVersion),
                            .names_files = !options.has_temporary_run_dir};
  if (options.config.task.type == TaskType::kEvaluator) {
    return EvaluateJobFile(task, std::move(resolved), run_options);
  }
  std::unique_ptr<RunLease> lease;
  const bool keeps_backups = KeepsBackups(resolved.job());
  run_options.on_run_dir = [&](const std::string& folder) -> absl::Status {
    ASSIGN_OR_RETURN(lease, TakeRunLease(&task, folder));
    if (is_chief) RETURN_IF_ERROR(CheckRunIsNotOver(folder, keeps_backups));
    WriteLogBesideResults(options, is_chief, folder);
    return absl::OkStatus();
  };
  const std::string run_dir = resolved.run_dir();
  if (is_chief) {
    JobControl::OfProcess().SetCheckpointFolder(
        RequestedCheckpointFolder(run_dir));
    if (run_options.names_files) {
      const absl::Duration coordinator_return_timeout =
          CoordinatorJournalDir(options).empty()
              ? absl::ZeroDuration()
              : options.coordinator_return_timeout;
      LOG(INFO) << DescribeLossCost(
          resolved.job(), options.config, options.server_return_timeout,
          coordinator_return_timeout, options.min_workers,
          !ServerLogDir(options).empty());
    }
  }
  absl::Status status =
      RunJob(std::move(resolved), make_strategy, run_options).status();
  status = StatusOfRun(lease.get(), std::move(status));
  lease.reset();
  // The folder was not asked for, and the error says what was wrong.
  const bool is_unwanted = is_chief && options.run_dir.empty();
  if (is_unwanted && absl::IsInvalidArgument(status)) {
    RemoveIfNoResults(run_dir);
  }
  return status;
}

}  // namespace muster
