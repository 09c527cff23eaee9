#ifndef COMMON_IO_CHECKPOINT_CHECKPOINT_STATE_H_
#define COMMON_IO_CHECKPOINT_CHECKPOINT_STATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/io/checkpoint/disk.h"

namespace muster {

// What the file `checkpoint` of a folder says: which checkpoints it holds.
struct CheckpointState {
  struct Checkpoint {
    std::string prefix;  // With the folder.
    absl::Time written;
  };

  // Oldest first, the newest last; without those that are kept for good.
  std::vector<Checkpoint> checkpoints;
  // When the last one that is kept for good was written.
  absl::Time last_preserved = absl::UnixEpoch();
};

std::string CheckpointStatePath(absl::string_view folder);

// Replaces the file in one step. Text format as TensorFlow has it, paths
// relative to the folder so that it can be moved, and first a comment with the
// checksum of the rest, which TensorFlow skips. `state` has a checkpoint.
absl::Status WriteCheckpointState(Disk* disk, absl::string_view folder,
                                  const CheckpointState& state);

// Ours, or TensorFlow's own; without the comment nothing is checked.
//   kNotFound  no such file
//   kDataLoss  not a state, without a checkpoint, or changed since it was
//   written
absl::StatusOr<CheckpointState> ReadCheckpointState(Disk* disk,
                                                    absl::string_view folder);

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_CHECKPOINT_STATE_H_
