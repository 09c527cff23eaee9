#ifndef COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_CHECKPOINT_H_
#define COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/variables/variable_store.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/storage/disk.h"
#include "common/learn/train/checkpoints/training_state.h"

namespace muster {

namespace proto {
class TrainingState;
}  // namespace proto

// Checkpoints of training. A checkpoint consists of the shards of the variables
// and one more shard with TrainingState, the tensors of callbacks, and the
// object graph, through which TensorFlow finds the tensors.
// docs/design/checkpoints.md says what is restored bit-identically.

// The state of training between two steps, which any thread can write while
// training continues.
class TrainingSnapshot {
 public:
  ~TrainingSnapshot();

  // If replicas train in sync, all processes must call it between the same two
  // steps. `references` are additional paths to the variables, such as those of
  // KerasObjectsOf(model). `loss_scale` is the variable with the scale of the
  // loss, which Keras' LossScaleOptimizer then finds; empty: none.
  static absl::StatusOr<std::unique_ptr<TrainingSnapshot>> Take(
      VariableStore& variables, TrainingState state,
      std::vector<ObjectReference> references = {},
      const std::string& loss_scale = "");

  // Takes the weights only, without optimizer slots and the state of training.
  static absl::StatusOr<std::unique_ptr<TrainingSnapshot>> TakeWeights(
      VariableStore& variables, std::vector<ObjectReference> references = {});

  const proto::TrainingState& state() const { return state_.message(); }

  // Writes the checkpoint. Must be called at most once, on the chief only. An
  // existing checkpoint with this prefix is replaced.
  //   kResourceExhausted  the disk is full
  //   others              see VariableStore::SaveShards() and
  //   PublishTensorBundle()
  absl::Status WriteTo(Disk* disk, absl::string_view prefix);
  // Writes the next checkpoint of `manager`, whose disk must be `disk`, and
  // returns its prefix.
  absl::StatusOr<std::string> WriteTo(
      Disk* disk, CheckpointManager* manager,
      std::optional<int64_t> number = std::nullopt);

 private:
  TrainingSnapshot(std::unique_ptr<VariableSnapshot> variables, int shard_count,
                   TrainingState state, bool has_state,
                   std::vector<ObjectReference> references);

  int shard_count() const { return variable_shard_count_ + 1; }
  absl::Status WriteShards(Disk* disk, absl::string_view prefix);
  absl::Status WriteStateShard(Disk* disk, absl::string_view prefix);

  const std::unique_ptr<VariableSnapshot> variables_;
  const int variable_shard_count_;
  const TrainingState state_;
  const bool has_state_;
  const std::vector<ObjectReference> references_;
  // The variables that are not weights. Their update counts are not iterations.
  absl::flat_hash_set<std::string> optimizer_state_;
  std::string loss_scale_;
  std::optional<double> loss_scale_counter_;
};

// Reads the state of training from a checkpoint.
//   kNotFound  the checkpoint contains variables only
//   kDataLoss  the checkpoint is damaged
absl::StatusOr<proto::TrainingState> ReadTrainingState(
    const TensorBundleReader& reader);

// Returns the prefix of the checkpoint at `path`: `path` itself if it is a
// prefix, or the newest checkpoint with valid checksums if it is a folder of
// checkpoints named `checkpoint_name`-1, -2, ...
//   kNotFound         there is no checkpoint
//   kDataLoss         no checkpoint can be read; the message has the reason for
//                     each
//   kInvalidArgument  `path` is a Keras file of another format (.keras, .h5)
absl::StatusOr<std::string> FindCheckpoint(
    Disk* disk, const std::string& path,
    const std::string& checkpoint_name = "ckpt");

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_CHECKPOINT_H_
