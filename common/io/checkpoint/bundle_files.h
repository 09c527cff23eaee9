#ifndef COMMON_IO_CHECKPOINT_BUNDLE_FILES_H_
#define COMMON_IO_CHECKPOINT_BUNDLE_FILES_H_

#include <string>

#include "absl/strings/string_view.h"

// The files of the checkpoint with a prefix, as in "runs/7/ckpt-3".
namespace muster {

// In a name there are five digits for it.
inline constexpr int kShardCountMax = 99999;

// "ckpt-3.index", "ckpt-3.data-00000-of-00002".
std::string BundleIndexPath(absl::string_view prefix);
std::string BundleDataPath(absl::string_view prefix, int shard_index,
                           int shard_count);

// What the writer of one shard leaves for who publishes the whole:
// "ckpt-3.part-00000-of-00002.index", "ckpt-3.part-00000-of-00002.data".
std::string PartIndexPath(absl::string_view prefix, int shard_index,
                          int shard_count);
std::string PartDataPath(absl::string_view prefix, int shard_index,
                         int shard_count);

// Which of these kinds of file `name` is the name of, and of which checkpoint.
struct BundleFileName {
  enum class Kind { kIndex, kData, kPart, kTemporary, kOther };

  Kind kind = Kind::kOther;
  absl::string_view prefix;  // Into the name.
};
BundleFileName ParseBundleFileName(absl::string_view name);

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_BUNDLE_FILES_H_
