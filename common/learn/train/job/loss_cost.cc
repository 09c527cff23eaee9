#include "common/learn/train/job/loss_cost.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/io/keras/keras_archive.h"
#include "common/learn/train/callbacks/backup_and_restore.h"
#include "common/learn/train/callbacks/model_checkpoint.h"
#include "common/learn/train/job/job_callbacks.h"
#include "common/learn/train/job/job_config_reader.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

constexpr double kRecoveryIntervalSeconds = 60;

std::optional<BackupAndRestoreOptions> FindBackup(
    const proto::TrainingJob& job) {
  return FindCallback<BackupAndRestoreOptions>(job, "backup_and_restore");
}

bool WritesCheckpoints(const proto::TrainingJob& job) {
  for (const proto::JobCallback& callback : job.callbacks()) {
    const auto options =
        FindOptionsOfKind<ModelCheckpointOptions>("model_checkpoint", callback);
    const bool is_checkpoint =
        options.has_value() &&
        KerasFileKindOf(options->filepath) == KerasFileKind::kNone;
    if (is_checkpoint) return true;
  }
  return FindBackup(job).has_value();
}

std::string RestartCost(const proto::TrainingJob& job) {
  const std::optional<BackupAndRestoreOptions> backup = FindBackup(job);
  if (!backup.has_value()) {
    return "if this run is interrupted, it cannot resume: all of its training "
           "would be repeated (a backup_and_restore callback in the job file "
           "prevents that)";
  }
  std::string saved;
  if (backup->save_freq.has_value()) {
    saved = absl::StrCat("every ", *backup->save_freq, " steps (save_freq)");
  }
  if (backup->save_each_epoch) {
    absl::StrAppend(&saved, saved.empty() ? "" : " and ",
                    "after each epoch (save_each_epoch)");
  }
  return absl::StrCat(
      "if this run is interrupted, the job, started again, "
      "resumes from its backup in ",
      backup->backup_dir, ", written ",
      saved.empty() ? "on a signal only" : saved);
}

std::string ServerLossCost(const proto::TrainingJob& job,
                           absl::Duration return_timeout, bool keeps_logs) {
  if (job.strategy().parameter_server().ps_copies() > 1) {
    return "a lost parameter server costs nothing: the task with its copy "
           "takes over (ps_copies; launch needs --restart); if both are lost, "
           "training is rolled back";
  }
  if (return_timeout <= absl::ZeroDuration()) {
    return "a lost parameter server ends the job (--server_return_timeout=0; "
           "launch --restart waits for it)";
  }
  const auto& strategy = job.strategy().parameter_server();
  const bool can_continue = !strategy.recovery_dir().empty() ||
                            WritesCheckpoints(job) || !job.model().has_keras();
  if (!can_continue) {
    return absl::StrCat(
        "a lost parameter server ends the job: the first "
        "weights come from ",
        job.model().keras(),
        ", and nothing writes checkpoints (set recovery_dir)");
  }
  std::string cost = absl::StrCat(
      "a lost parameter server that is back within ",
      absl::FormatDuration(return_timeout), " costs ",
      keeps_logs ? "nothing if it restores its log, and otherwise " : "");
  if (!strategy.recovery_dir().empty()) {
    const double seconds = strategy.has_recovery_interval_seconds()
                               ? strategy.recovery_interval_seconds()
                               : kRecoveryIntervalSeconds;
    absl::StrAppend(&cost, "about ", seconds,
                    " s of training (recovery_interval_seconds)");
  } else if (WritesCheckpoints(job)) {
    absl::StrAppend(&cost,
                    "the steps since the newest checkpoint of a callback "
                    "(recovery_dir shortens that)");
  } else {
    absl::StrAppend(&cost,
                    "all training so far, because nothing writes checkpoints "
                    "(set recovery_dir)");
  }
  return cost;
}

std::string CoordinatorLossCost(const proto::TrainingJob& job,
                                absl::Duration return_timeout) {
  if (return_timeout <= absl::ZeroDuration() ||
      job.strategy().parameter_server().dispatch_batches()) {
    return "a lost coordinator ends the job";
  }
  return absl::StrCat("a lost coordinator that is back within ",
                      absl::FormatDuration(return_timeout),
                      " costs at most a second of training");
}

std::string WorkerLossCost(int min_workers) {
  if (min_workers == 0) {
    return "a lost worker ends all workers (--min_workers lets the others "
           "continue)";
  }
  return absl::StrCat(
      "a lost worker costs at most one step: the others continue, as long as ",
      min_workers, min_workers == 1 ? " is" : " are", " left");
}

}  // namespace

std::string DescribeLossCost(const proto::TrainingJob& job,
                             const ClusterConfig& config,
                             absl::Duration server_return_timeout,
                             absl::Duration coordinator_return_timeout,
                             int min_workers, bool servers_keep_logs) {
  const std::string restart = RestartCost(job);
  if (config.IsAlone()) return restart;
  if (config.HasParameterServers()) {
    return absl::StrCat(
        ServerLossCost(job, server_return_timeout, servers_keep_logs), "; ",
        CoordinatorLossCost(job, coordinator_return_timeout), "; ", restart);
  }
  return absl::StrCat(WorkerLossCost(min_workers), "; ", restart);
}

std::string DescribeResumption(const proto::TrainingJob& job,
                               const std::string& run_dir, bool was_saved) {
  const std::optional<BackupAndRestoreOptions> backup = FindBackup(job);
  if (!backup.has_value()) {
    return "started again, the job begins from the start; with a "
           "backup_and_restore callback in the job file it would resume";
  }
  return absl::StrCat("to resume from ",
                      was_saved && backup->save_before_preemption
                          ? "there"
                          : "its newest backup",
                      ", start the job again with --run_dir=", run_dir);
}

}  // namespace muster
