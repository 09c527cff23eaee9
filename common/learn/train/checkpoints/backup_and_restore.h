#ifndef COMMON_LEARN_TRAIN_CHECKPOINTS_BACKUP_AND_RESTORE_H_
#define COMMON_LEARN_TRAIN_CHECKPOINTS_BACKUP_AND_RESTORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/checkpoint/disk.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/callback.h"
#include "common/learn/train/checkpoints/background_writer.h"
#include "common/learn/train/history.h"

namespace muster {

struct BackupAndRestoreOptions {
  std::string backup_dir = "";
  // After each epoch.
  bool save_each_epoch = true;
  // Steps from one backup to the next, within epochs too; unset: none there.
  std::optional<int64_t> save_freq = std::nullopt;
  // When training has come to its end.
  bool delete_checkpoint = true;
  // A signal to end is obeyed after the step at hand, when that is saved.
  bool save_before_preemption = false;
  std::ostream* output = nullptr;  // Borrowed; null: standard output.
  Disk* disk = nullptr;            // Borrowed; null: the machine's.

  void VisitConfig(ConfigVisitor& visitor);
};

// Makes training go on where it stood, however it was ended: Fit() called
// again, in this process or another, with as many workers as there are then,
// finds the newest backup that is whole and continues after the step it was
// made at, with the same data, random numbers, metrics and history. To the same
// bits, where steps have them: docs/design/checkpoints.md.
//
// Backups are written as by ModelCheckpoint. Only the chief needs the folder.
//
// Equivalent to: keras.callbacks.BackupAndRestore, and to
// tf.distribute.experimental.PreemptionCheckpointHandler.
class BackupAndRestore final : public Callback {
 public:
  explicit BackupAndRestore(BackupAndRestoreOptions options);

  //   kInvalidArgument  no folder, or nothing says when to save
  static absl::Status CheckOptions(const BackupAndRestoreOptions& options);

  //   kNotFound, kInvalidArgument  the backup is of another model; names what
  //                                differs
  //   kDataLoss                    no backup can be read; says for each why
  absl::Status OnTrainBegin(Model& model) override;
  absl::Status OnTrainBatchEnd(Model& model, int64_t step,
                               const Logs& logs) override;
  absl::Status OnEpochEnd(Model& model, int epoch, const Logs& logs) override;
  absl::Status OnTrainEnd(Model& model, const Logs& logs) override;
  absl::Status OnPreemption(Model& model) override;
  bool watches_preemption() const override {
    return options_.save_before_preemption;
  }
  std::vector<std::string> output_folders() const override;
  int turn() const override { return 2; }

  // What training went on from; none when it began anew.
  const std::optional<std::string>& restored() const { return restored_; }

 private:
  absl::Status Restore(Model& model);
  absl::Status Save(Model& model, bool waits);
  absl::Status DeleteBackups();

  const BackupAndRestoreOptions options_;
  Disk* const disk_;
  std::unique_ptr<CheckpointManager> manager_;  // The chief's.
  std::optional<std::string> restored_;
  int64_t steps_since_save_ = 0;
  BackgroundWriter writer_;  // Before what it uses goes.
};

// The seed of the training that BackupAndRestore would go on with, so that data
// and random numbers can be those. Unset where there is no backup.
//   kDataLoss  no backup can be read
absl::StatusOr<std::optional<uint64_t>> BackedUpSeed(
    Disk* disk, const std::string& backup_dir);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CHECKPOINTS_BACKUP_AND_RESTORE_H_
