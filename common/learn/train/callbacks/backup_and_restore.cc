#include "common/learn/train/callbacks/backup_and_restore.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/strategy/training_recovery.h"
#include "common/learn/train/callbacks/message.h"
#include "common/learn/train/checkpoints/training_checkpoint.h"
#include "common/learn/train/checkpoints/training_progress.h"
#include "common/learn/train/model.h"
#include "proto/training_state.pb.h"

namespace muster {
namespace {

// The one before the newest is there in case that one is damaged.
constexpr int kBackupCountMax = 2;
constexpr char kCheckpointName[] = "backup";

}  // namespace

void BackupAndRestoreOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Describe("A job that is started again resumes where it stopped.");
  visitor.Visit("backup_dir", backup_dir);
  visitor.Visit("save_each_epoch", save_each_epoch);
  visitor.Visit(
      Described(
          "save_freq",
          "Steps from one backup to the next within an epoch; absent: none."),
      save_freq);
  visitor.Visit(
      Described("delete_checkpoint",
                "When training has completed, not when an operator stops it."),
      delete_checkpoint);
  visitor.Visit(
      Described("save_before_preemption",
                "After a termination signal, the current step is saved first."),
      save_before_preemption);
}

BackupAndRestore::BackupAndRestore(BackupAndRestoreOptions options)
    : options_(std::move(options)),
      disk_(options_.disk == nullptr ? Disk::Real() : options_.disk),
      interval_(options_.save_freq) {}

BackupAndRestore::~BackupAndRestore() = default;

absl::Status BackupAndRestore::CheckOptions(
    const BackupAndRestoreOptions& options) {
  const auto refuse = [](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("BackupAndRestore: ", what));
  };
  if (options.backup_dir.empty()) return refuse("backup_dir is missing");
  if (options.save_freq.has_value() && *options.save_freq < 1) {
    return refuse(absl::StrCat("save_freq is ", *options.save_freq,
                               "; expected at least 1"));
  }
  const bool saves = options.save_each_epoch || options.save_freq.has_value() ||
                     options.save_before_preemption;
  if (saves) return absl::OkStatus();
  return refuse(
      "it never saves: give it save_freq, save_each_epoch or "
      "save_before_preemption");
}

absl::Status BackupAndRestore::OnTrainBegin(Model& model) {
  RETURN_IF_ERROR(CheckOptions(options_));
  RETURN_IF_ERROR(OnChiefChange(model));
  if (TrainingRecovery* const recovery = model.strategy()->recovery()) {
    RETURN_IF_ERROR(recovery->CheckCanSave(
        JoinPath(options_.backup_dir, absl::StrCat(kCheckpointName, "-1"))));
  }
  return model.progress()->is_continued() ? absl::OkStatus() : Restore(model);
}

absl::Status BackupAndRestore::OnChiefChange(Model& model) {
  writer_.Await().IgnoreError();  // The log has it.
  manager_ = nullptr;
  if (!model.strategy()->is_chief()) return absl::OkStatus();
  ASSIGN_OR_RETURN(manager_, CheckpointManager::Create(
                                 {.folder = options_.backup_dir,
                                  .checkpoint_name = kCheckpointName,
                                  .checkpoint_count_max = kBackupCountMax,
                                  .disk = disk_}));
  return absl::OkStatus();
}

std::vector<std::string> BackupAndRestore::output_folders() const {
  // Another disk than the machine's has folders of its own.
  if (options_.disk != nullptr) return {};
  return {options_.backup_dir};
}

absl::Status BackupAndRestore::Restore(Model& model) {
  absl::StatusOr<std::string> newest =
      model.FindCheckpoint(options_.backup_dir, kCheckpointName);
  if (absl::IsNotFound(newest.status())) return absl::OkStatus();
  RETURN_IF_ERROR(newest.status());
  ASSIGN_OR_RETURN(const TrainingState restored,
                   model.RestoreCheckpoint(*newest));
  RETURN_IF_ERROR(model.progress()->ResumeFrom(restored));
  restored_ = *newest;
  const proto::TrainingState& state = restored.message();
  SayOnce(model, options_.output,
          absl::StrCat("Resuming in epoch ", state.epoch() + 1, " after step ",
                       state.step_in_epoch(), " from ", *newest));
  return absl::OkStatus();
}

absl::Status BackupAndRestore::OnEpochBegin(Model&, int) {
  interval_.BeginEpoch();
  return absl::OkStatus();
}

absl::Status BackupAndRestore::OnTrainBatchEnd(Model& model, int64_t step,
                                               const Logs&) {
  return interval_.IsDue(step) ? Save(model, /*waits=*/false)
                               : absl::OkStatus();
}

absl::Status BackupAndRestore::OnEpochEnd(Model& model, int, Logs&) {
  // The backup of an operator's stop is of a step. The epoch is incomplete.
  const bool is_complete = !model.progress()->is_interrupted();
  if (!options_.save_each_epoch || !is_complete) return absl::OkStatus();
  // However short epochs are, each is saved. The log has what went wrong.
  writer_.Await().IgnoreError();
  return Save(model, /*waits=*/false);
}

absl::Status BackupAndRestore::Save(Model& model, bool waits) {
  ASSIGN_OR_RETURN(std::unique_ptr<TrainingSnapshot> taken,
                   model.TakeSnapshot());
  if (manager_ == nullptr) return absl::OkStatus();
  // The function has to be copyable.
  const std::shared_ptr<TrainingSnapshot> snapshot = std::move(taken);
  const auto write = [this, snapshot] {
    return snapshot->WriteTo(disk_, manager_.get()).status();
  };
  std::string what = absl::StrCat("backup to ", options_.backup_dir);
  if (waits) return writer_.Run(std::move(what), write);
  writer_.Start(std::move(what), write);
  return absl::OkStatus();
}

absl::Status BackupAndRestore::OnPreemption(Model& model) {
  // An older backup may have failed; the one of this step counts.
  writer_.Await().IgnoreError();
  absl::Status status = Save(model, /*waits=*/true);
  if (status.ok()) {
    SayOnce(model, options_.output,
            absl::StrCat("Saved to ", options_.backup_dir,
                         " before the process ends"));
  }
  return status;
}

std::vector<std::string> BackupAndRestore::saved() {
  const bool is_idle = writer_.Await().ok() || !writer_.is_busy();
  if (manager_ == nullptr || !is_idle) return {};
  std::vector<std::string> saved = manager_->checkpoints();
  std::reverse(saved.begin(), saved.end());
  return saved;
}

CallbackState BackupAndRestore::SaveState() const {
  return {.text = interval_.Save()};
}

absl::Status BackupAndRestore::RestoreState(Model&,
                                            const CallbackState& state) {
  return interval_.Restore("BackupAndRestore", state.text);
}

absl::Status BackupAndRestore::OnTrainEnd(Model& model, const Logs&) {
  writer_.Await().IgnoreError();  // The log has it.
  if (writer_.failure_count() > 0) {
    LOG(ERROR) << writer_.failure_count() << " backups to "
               << options_.backup_dir << " could not be written";
  }
  const bool deletes = options_.delete_checkpoint &&
                       model.strategy()->is_chief() &&
                       !model.progress()->is_interrupted();
  return deletes ? DeleteBackups() : absl::OkStatus();
}

absl::Status BackupAndRestore::DeleteBackups() {
  const absl::StatusOr<std::vector<std::string>> names =
      disk_->List(options_.backup_dir);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  RETURN_IF_ERROR(names.status());
  // What lists the backups goes first: half of them are not to be found.
  const std::string list = JoinPath(options_.backup_dir, "checkpoint");
  const absl::Status removed = disk_->Remove(list);
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  for (const std::string& name : *names) {
    const bool is_index = absl::EndsWith(name, ".index");
    if (!absl::StartsWith(name, kCheckpointName) || !is_index) continue;
    RETURN_IF_ERROR(disk_->Remove(JoinPath(options_.backup_dir, name)));
  }
  for (const std::string& name : *names) {
    const bool is_index = absl::EndsWith(name, ".index");
    if (!absl::StartsWith(name, kCheckpointName) || is_index) continue;
    RETURN_IF_ERROR(disk_->Remove(JoinPath(options_.backup_dir, name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<uint64_t>> BackedUpSeed(
    Disk* disk, const std::string& backup_dir) {
  absl::StatusOr<std::string> prefix =
      FindCheckpoint(disk, backup_dir, kCheckpointName);
  if (absl::IsNotFound(prefix.status())) return std::nullopt;
  RETURN_IF_ERROR(prefix.status());
  ASSIGN_OR_RETURN(const auto reader, TensorBundleReader::Open(disk, *prefix));
  ASSIGN_OR_RETURN(const proto::TrainingState state,
                   ReadTrainingState(*reader));
  return state.seed();
}

}  // namespace muster
