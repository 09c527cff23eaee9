#ifndef COMMON_IO_CHECKPOINT_CHECKPOINT_STATE_H_
#define COMMON_IO_CHECKPOINT_CHECKPOINT_STATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/io/storage/disk.h"

namespace muster {

// The contents of the file `checkpoint`: the checkpoints of a folder.
struct CheckpointState {
  struct Checkpoint {
    std::string prefix;  // Including the folder.
    absl::Time written;
  };

  // Oldest first, without checkpoints that are kept permanently.
  std::vector<Checkpoint> checkpoints;
  // Prefixes that the file lists after the newest of `checkpoints`: it was
  // edited to return to an older one. Not written.
  std::vector<std::string> skipped_prefixes;
  // When the last permanently kept checkpoint was written.
  absl::Time last_preserved = absl::UnixEpoch();
};

std::string CheckpointStatePath(absl::string_view folder);

// Replaces the file atomically. Uses TensorFlow's text format with paths
// relative to the folder, so that it can be moved. The first line is a comment,
// which TensorFlow ignores, with the checksum of the rest. `state` must have a
// checkpoint.
absl::Status WriteCheckpointState(Disk* disk, absl::string_view folder,
                                  const CheckpointState& state);

// Reads a file written by Muster or by TensorFlow. Verifies the checksum if the
// comment is present.
//   kNotFound  the file does not exist
//   kDataLoss  the file is invalid, lists no checkpoint, or was changed after
//              it was written
absl::StatusOr<CheckpointState> ReadCheckpointState(Disk* disk,
                                                    absl::string_view folder);

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_CHECKPOINT_STATE_H_
