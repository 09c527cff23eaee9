#ifndef COMMON_IO_CHECKPOINT_BUNDLE_PLACEMENT_H_
#define COMMON_IO_CHECKPOINT_BUNDLE_PLACEMENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/storage/disk.h"

// Where the data files of a new checkpoint are, before and after it is
// published.
//
// Names of data files contain the number of data files. A checkpoint that
// replaces one of the same prefix has another number of them, so that the old
// files stay until the new index is in place.
//
// On a disk, writers use temporary names and the publisher renames the files.
// Objects cannot be renamed, so their writers use the final names.
namespace muster {

// Returns the number of data files that the index at `prefix` names. 0 if there
// is no index, or if it is damaged, so that a damaged index can be replaced.
//   errors of the disk
absl::StatusOr<int> PublishedShardCount(Disk* disk, absl::string_view prefix);

// Returns the number of data files of the checkpoint that `shard_count` writers
// are about to publish at `prefix`: `shard_count`, or one more.
//   errors of the disk
absl::StatusOr<int> NewShardCount(Disk* disk, absl::string_view prefix,
                                  int shard_count);

// Returns where the writer of a shard writes its data. `new_count` is
// NewShardCount().
std::string WrittenDataPath(const Disk& disk, absl::string_view prefix,
                            int shard_index, int shard_count, int new_count);

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_BUNDLE_PLACEMENT_H_
