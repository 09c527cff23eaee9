#ifndef COMMON_IO_CHECKPOINT_CHECKPOINT_MANAGER_H_
#define COMMON_IO_CHECKPOINT_CHECKPOINT_MANAGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/io/checkpoint/checkpoint_state.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/storage/disk.h"

namespace muster {

// Manages the newest checkpoints in a folder: `ckpt-1`, `ckpt-2` and so on, and
// the file `checkpoint` that lists them. Equivalent to:
// tf.train.CheckpointManager, which can read and write the same folder.
//
// Save() writes, in this order: the data files, the index, and `checkpoint`
// with the new entry; then it removes expired checkpoints and their entries.
// Each step is durable before the next. After a crash at any point the folder
// holds the previous or the new checkpoint, complete, and Create() lists a new
// one that is complete and was not listed yet. A failed save changes nothing.
//
// Only one manager may write to a folder; others may read it. Not thread-safe.
class CheckpointManager {
 public:
  struct Options {
    std::string folder;
    std::string checkpoint_name = "ckpt";
    // The maximum number of checkpoints; older ones are removed. Unset: no
    // limit.
    std::optional<int> checkpoint_count_max = 5;
    // Keeps an expired checkpoint permanently, without listing it, if the last
    // one kept in this way is older by at least this duration. Zero: keeps
    // none.
    absl::Duration keep_one_every = absl::ZeroDuration();
    Disk* disk = nullptr;  // Null: Disk::Real().
    // The wall time for `checkpoint`. Null: absl::Now.
    std::function<absl::Time()> wall_time;
  };

  // Reads the folder, which need not exist. If `checkpoint` is damaged or
  // cannot be read, or is missing although there are checkpoints, logs a
  // warning and lists the files instead.
  //   kInvalidArgument  an option is invalid
  //   others            errors of the disk
  static absl::StatusOr<std::unique_ptr<CheckpointManager>> Create(
      Options options);

  // Returns the prefixes, oldest first, without checkpoints that are kept
  // permanently.
  std::vector<std::string> checkpoints() const;
  // Returns the newest prefix, which may be damaged.
  std::optional<std::string> latest_checkpoint() const;

  // Writes a checkpoint of one shard and returns its prefix. Its number is
  // `number`, or the highest in the folder plus one.
  //   kInvalidArgument  `number` is negative
  //   others            the first error of `write` or of the disk
  using WriteFunction = absl::FunctionRef<absl::Status(TensorBundleWriter*)>;
  absl::StatusOr<std::string> Save(
      WriteFunction write, std::optional<int64_t> number = std::nullopt);

  // For a checkpoint with several writers: pass NextPrefix() to the
  // TensorBundleWriters of all shards, and call Publish() when all have
  // finished, or Abandon() if one has failed.
  absl::StatusOr<std::string> NextPrefix(
      std::optional<int64_t> number = std::nullopt);
  // Publishes the checkpoint and removes expired ones. Errors as
  // PublishTensorBundle().
  absl::Status Publish(absl::string_view prefix, int shard_count);
  void Abandon(absl::string_view prefix, int shard_count);

  // Opens the newest checkpoint with valid checksums. Logs each newer one with
  // its error: files that are missing, damaged, no regular files, or cannot be
  // read by the device.
  //   kNotFound  the folder has no checkpoint
  //   kDataLoss  no checkpoint can be read; the message has the error of each
  //   kUnavailable, kDeadlineExceeded, kPermissionDenied, kUnauthenticated,
  //   kResourceExhausted, kCancelled
  //              the newest one cannot be read now, but may be intact
  //   kUnimplemented  another program has written the newest one
  absl::StatusOr<std::unique_ptr<TensorBundleReader>> OpenLatest();

  // Calls `restore` with OpenLatest(), or `initialize` if there is no
  // checkpoint. Returns the prefix of the restored checkpoint.
  //   kDataLoss  there are checkpoints but none can be read
  //   others     the error of the called function
  absl::StatusOr<std::optional<std::string>> RestoreOrInitialize(
      absl::FunctionRef<absl::Status(const TensorBundleReader&)> restore,
      absl::FunctionRef<absl::Status()> initialize);

 private:
  explicit CheckpointManager(Options options) : options_(std::move(options)) {}

  absl::Status Load();
  // Lists the complete checkpoints that are newer than all that are listed: a
  // process was killed before it listed them.
  void ListNewerCheckpoints(absl::Time now);
  // Returns the numbers of the checkpoints in the folder that have an index, in
  // ascending order.
  absl::StatusOr<std::vector<int64_t>> ListNumbers() const;
  // Returns the number in "ckpt-7"; unset for other names.
  std::optional<int64_t> NumberOf(absl::string_view name) const;
  std::string PrefixOf(int64_t number) const;
  // Returns the listed checkpoints, newest first, then those kept permanently.
  absl::StatusOr<std::vector<std::string>> Candidates() const;
  // Removes files of incomplete saves.
  void RemoveLeftovers();
  absl::Status List(absl::string_view prefix);
  void RemoveExpired();
  void RemoveCheckpoint(absl::string_view prefix);

  const Options options_;
  CheckpointState state_;
};

// Returns the newest checkpoint that `folder` lists, without verifying it.
// Equivalent to: tf.train.latest_checkpoint.
//   kNotFound  there is no checkpoint
//   kDataLoss  the file `checkpoint` is damaged
absl::StatusOr<std::string> LatestCheckpoint(Disk* disk,
                                             absl::string_view folder);

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_CHECKPOINT_MANAGER_H_
