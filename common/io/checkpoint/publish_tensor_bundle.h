#ifndef COMMON_IO_CHECKPOINT_PUBLISH_TENSOR_BUNDLE_H_
#define COMMON_IO_CHECKPOINT_PUBLISH_TENSOR_BUNDLE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/io/storage/disk.h"

namespace muster {

// Combines the files of the TensorBundleWriters of `shard_count` shards into
// one checkpoint: renames their data files and writes one index.
//
// The checkpoint exists when its index exists, which is put in place
// atomically. If there was a checkpoint with this prefix, readers see the old
// or the new one at any time, even after a crash: the new data files have other
// names than the old ones. After an error the old checkpoint remains, unless
// the last sync failed, whose outcome is unknown. The writers' files are
// removed in any case.
//   kNotFound            a shard has not been finished; the message names its
//                        file
//   kDataLoss            a writer's file is damaged
//   kAlreadyExists       two shards hold the same tensor or slice
//   kFailedPrecondition  the slices of a tensor do not cover it, or differ in
//                        type; the message names the tensor and what is missing
//   others               errors of the disk
absl::Status PublishTensorBundle(Disk* disk, absl::string_view prefix,
                                 int shard_count);

// Removes all files of writers for `prefix`.
void RemoveBundleParts(Disk* disk, absl::string_view prefix, int shard_count);

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_PUBLISH_TENSOR_BUNDLE_H_
