#ifndef COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_CHECKPOINT_H_
#define COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_CHECKPOINT_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/variables/variable_store.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/checkpoint/disk.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "proto/training_state.pb.h"

namespace muster {

// A checkpoint of training: the shards of the variables, and one more with what
// else it takes to go on: TrainingState, and the object graph by which
// TensorFlow finds everything. docs/design/checkpoints.md says what is exact.

// Training at one moment, to be written by any thread while it goes on.
class TrainingSnapshot {
 public:
  // Where replicas train in sync all processes call it between the same steps.
  // `references` are further paths to what the variables are called, such as
  // KerasObjectsOf() the model.
  static absl::StatusOr<std::unique_ptr<TrainingSnapshot>> Take(
      VariableStore& variables, proto::TrainingState state,
      std::vector<ObjectReference> references = {});

  // Weights alone: nothing that the optimizer keeps, and no state of training.
  static absl::StatusOr<std::unique_ptr<TrainingSnapshot>> TakeWeights(
      VariableStore& variables, std::vector<ObjectReference> references = {});

  const proto::TrainingState& state() const { return state_; }

  // Used once, by the chief alone.
  //   kResourceExhausted  the disk is full
  //   others              as VariableStore::SaveShards() and
  //                       PublishTensorBundle()
  // Replaces what there is of this prefix.
  absl::Status WriteTo(Disk* disk, absl::string_view prefix);
  // The next of the manager's checkpoints, whose disk is `disk`; returns its
  // prefix.
  absl::StatusOr<std::string> WriteTo(
      Disk* disk, CheckpointManager* manager,
      std::optional<int64_t> number = std::nullopt);

 private:
  TrainingSnapshot(std::unique_ptr<VariableSnapshot> variables, int shard_count,
                   proto::TrainingState state, bool has_state,
                   std::vector<ObjectReference> references)
      : variables_(std::move(variables)),
        variable_shard_count_(shard_count),
        state_(std::move(state)),
        has_state_(has_state),
        references_(std::move(references)) {}

  int shard_count() const { return variable_shard_count_ + 1; }
  absl::Status WriteShards(Disk* disk, absl::string_view prefix);
  absl::Status WriteStateShard(Disk* disk, absl::string_view prefix);

  const std::unique_ptr<VariableSnapshot> variables_;
  const int variable_shard_count_;
  const proto::TrainingState state_;
  const bool has_state_;
  const std::vector<ObjectReference> references_;
};

//   kNotFound  the checkpoint holds variables only
//   kDataLoss  damaged
absl::StatusOr<proto::TrainingState> ReadTrainingState(
    const TensorBundleReader& reader);

// The prefix that `path` means: itself, or of a folder of checkpoints called
// `checkpoint_name`-1 and so on the newest of which every checksum is right.
//   kNotFound         there is none
//   kDataLoss         there are some, and none can be read; says for each why
//   kInvalidArgument  `path` is a file of Keras in another format (.keras, .h5)
absl::StatusOr<std::string> FindCheckpoint(
    Disk* disk, const std::string& path,
    const std::string& checkpoint_name = "ckpt");

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CHECKPOINTS_TRAINING_CHECKPOINT_H_
