#ifndef COMMON_LEARN_TRAIN_CALLBACKS_MODEL_CHECKPOINT_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_MODEL_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/callbacks/background_writer.h"
#include "common/learn/train/callbacks/monitor.h"
#include "common/learn/train/callbacks/save_interval.h"

namespace muster {

class CheckpointManager;
class TrainingSnapshot;

struct ModelCheckpointOptions {
  // The prefix of each checkpoint; a pattern for FormatFileName(). A name that
  // ends in ".keras", or with save_weights_only in ".weights.h5", is a file of
  // Keras.
  std::string filepath = "";
  // Alternative to `filepath`: a folder with checkpoints ckpt-1, ckpt-2, ...
  // and the file `checkpoint`, which lists them.
  std::string directory = "";
  // With `directory`: the number of checkpoints to keep. Older ones are
  // removed, except one per `keep_one_every`. None: all are kept.
  std::optional<int> max_to_keep = 5;
  absl::Duration keep_one_every = absl::ZeroDuration();

  std::string monitor = "val_loss";
  MonitorMode mode = MonitorMode::kAuto;
  int verbose = 0;
  // Saves only if `monitor` is better than in all previous epochs, and than
  // initial_value_threshold.
  bool save_best_only = false;
  std::optional<double> initial_value_threshold = std::nullopt;
  // Saves neither optimizer slots nor the state of training.
  bool save_weights_only = false;
  // Number of steps between saves; unset: saves after each epoch.
  std::optional<int64_t> save_freq = std::nullopt;
  std::ostream* output = nullptr;  // Borrowed; null: standard output.
  // Borrowed; null: the local disk, on which files of Keras always are.
  Disk* disk = nullptr;

  void VisitConfig(ConfigVisitor& visitor);
};

// Saves checkpoints during training: after each epoch, or every `save_freq`
// steps.
//
// Files are written by another thread while training continues. A failed save
// is logged as a warning, and earlier checkpoints are kept. A save at the end
// of an epoch waits for the previous one to complete. A save within an epoch is
// skipped if the previous one is still running.
//
// Files of Keras are written before training continues, as Model::Save() and
// Model::SaveWeights() write them. docs/keras.md says what is in them.
//
// Equivalent to: keras.callbacks.ModelCheckpoint, except that files with other
// names are TensorFlow checkpoints. With `directory`:
// tf.train.CheckpointManager.
class ModelCheckpoint final : public Callback {
 public:
  explicit ModelCheckpoint(ModelCheckpointOptions options);
  ~ModelCheckpoint() override;

  //   kInvalidArgument  an option is invalid; the message names it. Or the
  //                     suffix of filepath contradicts save_weights_only
  static absl::Status CheckOptions(const ModelCheckpointOptions& options);

  //   kUnimplemented  files of Keras, and the model is neither Sequential nor
  //                   functional
  absl::Status OnTrainBegin(Model& model) override;
  absl::Status OnChiefChange(Model& model) override;
  absl::Status OnEpochBegin(Model& model, int epoch) override;
  absl::Status OnTrainBatchEnd(Model& model, int64_t step,
                               const Logs& logs) override;
  absl::Status OnEpochEnd(Model& model, int epoch, Logs& logs) override;
  absl::Status OnTrainEnd(Model& model, const Logs& logs) override;
  absl::Status OnPreemption(Model& model) override;

  CallbackState SaveState() const override;
  absl::Status RestoreState(Model& model, const CallbackState& state) override;
  bool watches_steps() const override { return options_.save_freq.has_value(); }
  std::vector<std::string> output_folders() const override;
  std::vector<std::string> saved() override;
  int turn() const override { return 1; }

  std::optional<double> best() const { return best_; }

 private:
  bool IsDue(Model& model, const Logs& logs, const std::string& where);
  absl::Status Save(Model& model, int64_t batch, const Logs& logs);
  void SaveKerasFile(Model& model, const std::string& path);
  // Returns whether it has begun to write.
  bool Write(std::unique_ptr<TrainingSnapshot> snapshot,
             const std::string& where);
  void NoteSaved(const std::string& path);
  absl::StatusOr<std::string> NameOf(int64_t batch, const Logs& logs) const;

  const ModelCheckpointOptions options_;
  Disk* const disk_;
  std::optional<Monitor> monitor_;              // With save_best_only.
  std::unique_ptr<CheckpointManager> manager_;  // `directory`; chief only.
  std::optional<double> best_;
  int epoch_ = 0;
  SaveInterval interval_;
  // Without `directory`: what was saved, newest last. Written by the writer.
  std::vector<std::string> saved_;
  BackgroundWriter writer_;  // Destroyed before the members it uses.
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_MODEL_CHECKPOINT_H_
