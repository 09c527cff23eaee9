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
#include "common/io/checkpoint/disk.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"

namespace muster {

// Keeps the last few checkpoints of a folder: `ckpt-1`, `ckpt-2` and so on, and
// the file `checkpoint` that lists them. Equivalent to: tf.train.
// CheckpointManager, which reads such a folder and writes it too.
//
// A save is, in this order: data files, index, `checkpoint` with the new one,
// the expired ones removed, `checkpoint` without them; each durable before the
// next. After a crash at any point the folder holds the last checkpoint or the
// new one, whole. A save that fails changes nothing that was there.
//
// One manager writes to a folder; others may read it. Not thread-safe.
class CheckpointManager {
 public:
  struct Options {
    std::string folder;
    std::string checkpoint_name = "ckpt";
    // The oldest beyond so many are removed. None: all stay.
    std::optional<int> checkpoint_count_max = 5;
    // One that expires stays for good, and leaves the list, when the last such
    // one is this much older. Zero: none does.
    absl::Duration keep_one_every = absl::ZeroDuration();
    Disk* disk = nullptr;  // Null: the machine's.
    // Of the wall, for what `checkpoint` says. Null: absl::Now.
    std::function<absl::Time()> wall_time;
  };

  // Reads what the folder holds, which need not exist. A `checkpoint` file that
  // is damaged, or missing beside checkpoints, is named in the log, and the
  // files themselves are listed.
  //   kInvalidArgument  an option makes no sense
  //   others            the disk's
  static absl::StatusOr<std::unique_ptr<CheckpointManager>> Create(
      Options options);

  // Prefixes, oldest first, without those that are kept for good.
  std::vector<std::string> checkpoints() const;
  // The newest, whether it can be read or not.
  std::optional<std::string> latest_checkpoint() const;

  // Writes a checkpoint of one shard and returns its prefix. Its number is
  // `number`, or one more than that of any in the folder.
  //   kInvalidArgument  `number` is negative
  //   others            the first error of `write` or of the disk
  using WriteFunction = absl::FunctionRef<absl::Status(TensorBundleWriter*)>;
  absl::StatusOr<std::string> Save(
      WriteFunction write, std::optional<int64_t> number = std::nullopt);

  // The same for a checkpoint that several write: give them NextPrefix(), and
  // when the TensorBundleWriters of all shards have finished, Publish().
  // Abandon() instead when one has failed.
  absl::StatusOr<std::string> NextPrefix(
      std::optional<int64_t> number = std::nullopt);
  //   as PublishTensorBundle()
  absl::Status Publish(absl::string_view prefix, int shard_count);
  void Abandon(absl::string_view prefix, int shard_count);

  // The newest checkpoint of which every checksum is right. Those that come
  // after it are named in the log with what is wrong with them.
  //   kNotFound  the folder has no checkpoint
  //   kDataLoss  none of them can be read; says for each why
  absl::StatusOr<std::unique_ptr<TensorBundleReader>> OpenLatest();

  // Calls `restore` with OpenLatest(), or `initialize` when there is no
  // checkpoint, and returns the prefix of what was restored.
  //   kDataLoss  there are checkpoints and none can be read
  //   others     the error of the function that was called
  absl::StatusOr<std::optional<std::string>> RestoreOrInitialize(
      absl::FunctionRef<absl::Status(const TensorBundleReader&)> restore,
      absl::FunctionRef<absl::Status()> initialize);

 private:
  explicit CheckpointManager(Options options) : options_(std::move(options)) {}

  absl::Status Load();
  // Numbers of the checkpoints in the folder that have an index, rising.
  absl::StatusOr<std::vector<int64_t>> ListNumbers() const;
  // The number in "ckpt-7"; none for other names.
  std::optional<int64_t> NumberOf(absl::string_view name) const;
  std::string PrefixOf(int64_t number) const;
  // Listed ones from the newest back, then those kept for good.
  absl::StatusOr<std::vector<std::string>> Candidates() const;
  // What saves left that did not come to an end.
  void RemoveLeftovers();
  absl::Status List(absl::string_view prefix);
  void RemoveExpired();
  void RemoveCheckpoint(absl::string_view prefix);

  const Options options_;
  CheckpointState state_;
};

// The newest checkpoint that `folder` lists; equivalent to:
// tf.train.latest_checkpoint. Does not look into it.
//   kNotFound  there is none
//   kDataLoss  the file `checkpoint` is damaged
absl::StatusOr<std::string> LatestCheckpoint(Disk* disk,
                                             absl::string_view folder);

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_CHECKPOINT_MANAGER_H_
