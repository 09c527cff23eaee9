#ifndef COMMON_LEARN_TRAIN_CHECKPOINTS_MODEL_CHECKPOINT_H_
#define COMMON_LEARN_TRAIN_CHECKPOINTS_MODEL_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/checkpoint/disk.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/callback.h"
#include "common/learn/train/callbacks/monitor.h"
#include "common/learn/train/checkpoints/background_writer.h"
#include "common/learn/train/checkpoints/training_checkpoint.h"
#include "common/learn/train/history.h"

namespace muster {

struct ModelCheckpointOptions {
  // The prefix of each checkpoint, with names in braces: FormatFileName().
  std::string filepath = "";
  // Instead of `filepath`: a folder of ckpt-1, ckpt-2 and so on, and of the
  // file `checkpoint` that lists them.
  std::string directory = "";
  // Of `directory`: the oldest beyond so many are removed, except one in every
  // `keep_one_every`. None: all stay.
  std::optional<int> max_to_keep = 5;
  absl::Duration keep_one_every = absl::ZeroDuration();

  std::string monitor = "val_loss";
  MonitorMode mode = MonitorMode::kAuto;
  int verbose = 0;
  // Only what is better by `monitor` than all before, and than this value.
  bool save_best_only = false;
  std::optional<double> initial_value_threshold = std::nullopt;
  // Nothing of the optimizer, and not where training stands.
  bool save_weights_only = false;
  // Steps from one save to the next; unset: one after each epoch.
  std::optional<int64_t> save_freq = std::nullopt;
  std::ostream* output = nullptr;  // Borrowed; null: standard output.
  Disk* disk = nullptr;            // Borrowed; null: the machine's.

  void VisitConfig(ConfigVisitor& visitor);
};

// Saves the model while it trains: after an epoch, or every so many steps.
//
// Files are written by another thread while training goes on. A save that fails
// is a warning, and what was saved before stays. One between epochs waits for
// the one before; one within an epoch is skipped where that is still being
// written.
//
// Equivalent to: keras.callbacks.ModelCheckpoint, except that files are
// TensorFlow's checkpoints. With `directory`: tf.train.CheckpointManager.
class ModelCheckpoint final : public Callback {
 public:
  explicit ModelCheckpoint(ModelCheckpointOptions options);

  //   kInvalidArgument  an option makes no sense; names it
  static absl::Status CheckOptions(const ModelCheckpointOptions& options);

  absl::Status OnTrainBegin(Model& model) override;
  absl::Status OnEpochBegin(Model& model, int epoch) override;
  absl::Status OnTrainBatchEnd(Model& model, int64_t step,
                               const Logs& logs) override;
  absl::Status OnEpochEnd(Model& model, int epoch, const Logs& logs) override;
  absl::Status OnTrainEnd(Model& model, const Logs& logs) override;
  absl::Status OnPreemption(Model& model) override;

  std::string SaveState() const override;
  absl::Status RestoreState(const std::string& state) override;
  std::vector<std::string> output_folders() const override;
  int turn() const override { return 1; }

  std::optional<double> best() const { return best_; }

 private:
  bool IsDue(Model& model, const Logs& logs, const std::string& where);
  absl::Status Save(Model& model, int64_t batch, const Logs& logs);
  void Write(std::unique_ptr<TrainingSnapshot> snapshot,
             const std::string& where);
  absl::StatusOr<std::string> NameOf(int64_t batch, const Logs& logs) const;

  const ModelCheckpointOptions options_;
  Disk* const disk_;
  std::optional<Monitor> monitor_;              // With save_best_only.
  std::unique_ptr<CheckpointManager> manager_;  // Of `directory`, the chief's.
  std::optional<double> best_;
  int epoch_ = 0;
  int64_t steps_since_save_ = 0;
  BackgroundWriter writer_;  // Before what it uses goes.
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CHECKPOINTS_MODEL_CHECKPOINT_H_
