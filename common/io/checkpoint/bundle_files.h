#ifndef COMMON_IO_CHECKPOINT_BUNDLE_FILES_H_
#define COMMON_IO_CHECKPOINT_BUNDLE_FILES_H_

#include <string>

#include "absl/strings/string_view.h"

// Names of the files of a checkpoint with a prefix such as "runs/7/ckpt-3".
namespace muster {

// The largest number of shards that fits into the five digits in names.
inline constexpr int kShardCountMax = 99999;

// "ckpt-3.index" and "ckpt-3.data-00000-of-00002".
std::string BundleIndexPath(absl::string_view prefix);
std::string BundleDataPath(absl::string_view prefix, int shard_index,
                           int shard_count);

// The files that the writer of one shard leaves for the publisher:
// "ckpt-3.part-00000-of-00002.index" and "ckpt-3.part-00000-of-00002.data".
std::string PartIndexPath(absl::string_view prefix, int shard_index,
                          int shard_count);
std::string PartDataPath(absl::string_view prefix, int shard_index,
                         int shard_count);

// The kind of a file and the checkpoint that it belongs to.
struct BundleFileName {
  enum class Kind { kIndex, kData, kPart, kTemporary, kOther };

  Kind kind = Kind::kOther;
  absl::string_view prefix;  // Points into the name.
};
BundleFileName ParseBundleFileName(absl::string_view name);

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_BUNDLE_FILES_H_
