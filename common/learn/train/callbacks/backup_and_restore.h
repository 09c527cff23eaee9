#ifndef COMMON_LEARN_TRAIN_CALLBACKS_BACKUP_AND_RESTORE_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_BACKUP_AND_RESTORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/callbacks/background_writer.h"
#include "common/learn/train/callbacks/save_interval.h"

namespace muster {

class CheckpointManager;

struct BackupAndRestoreOptions {
  std::string backup_dir = "";
  // If true, saves after each epoch.
  bool save_each_epoch = true;
  // Number of steps between backups within an epoch; unset: none.
  std::optional<int64_t> save_freq = std::nullopt;
  // If true, deletes the backups when training has completed: after the last
  // epoch, or when a callback has ended it. What an operator ends is saved, and
  // its backups remain.
  bool delete_checkpoint = true;
  // If true, a termination signal is handled after the current step: a backup
  // is saved before training ends.
  bool save_before_preemption = false;
  std::ostream* output = nullptr;  // Borrowed; null: standard output.
  Disk* disk = nullptr;            // Borrowed; null: the local disk.

  void VisitConfig(ConfigVisitor& visitor);
};

// Resumes interrupted training, regardless of how it was interrupted. When
// Fit() is called again, in this process or another and with any number of
// workers, it restores the newest valid backup and continues after its step,
// with the same data, random numbers, metrics and history.
// docs/design/checkpoints.md says when the result is bit-identical.
//
// Backups have the format of ModelCheckpoint. Only the chief accesses the
// folder.
//
// Equivalent to: keras.callbacks.BackupAndRestore, and to
// tf.distribute.experimental.PreemptionCheckpointHandler.
class BackupAndRestore final : public Callback {
 public:
  explicit BackupAndRestore(BackupAndRestoreOptions options);
  ~BackupAndRestore() override;

  //   kInvalidArgument  backup_dir is empty, or no option says when to save
  static absl::Status CheckOptions(const BackupAndRestoreOptions& options);

  //   kNotFound, kInvalidArgument  the backup is of another model; the message
  //                                names the difference
  //   kDataLoss                    no backup can be read; the message has the
  //                                reason for each
  //   kPermissionDenied            a parameter server may not write to
  //                                backup_dir; names its folders
  absl::Status OnTrainBegin(Model& model) override;
  absl::Status OnChiefChange(Model& model) override;
  absl::Status OnEpochBegin(Model& model, int epoch) override;
  absl::Status OnTrainBatchEnd(Model& model, int64_t step,
                               const Logs& logs) override;
  absl::Status OnEpochEnd(Model& model, int epoch, Logs& logs) override;
  absl::Status OnTrainEnd(Model& model, const Logs& logs) override;
  absl::Status OnPreemption(Model& model) override;
  bool watches_steps() const override { return options_.save_freq.has_value(); }
  bool watches_preemption() const override {
    return options_.save_before_preemption;
  }
  std::vector<std::string> output_folders() const override;
  std::vector<std::string> saved() override;
  CallbackState SaveState() const override;
  absl::Status RestoreState(Model& model, const CallbackState& state) override;
  int turn() const override { return 2; }

  // The backup that training resumed from; none if it started from the
  // beginning.
  const std::optional<std::string>& restored() const { return restored_; }

 private:
  absl::Status Restore(Model& model);
  absl::Status Save(Model& model, bool waits);
  absl::Status DeleteBackups();

  const BackupAndRestoreOptions options_;
  Disk* const disk_;
  std::unique_ptr<CheckpointManager> manager_;  // On the chief only.
  std::optional<std::string> restored_;
  SaveInterval interval_;
  BackgroundWriter writer_;  // Destroyed before the members it uses.
};

// Returns the seed of the training that BackupAndRestore would resume, so that
// data and random numbers can be the same. None if there is no backup.
//   kDataLoss  no backup can be read
absl::StatusOr<std::optional<uint64_t>> BackedUpSeed(
    Disk* disk, const std::string& backup_dir);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_BACKUP_AND_RESTORE_H_
