#ifndef COMMON_IO_CHECKPOINT_PUBLISH_TENSOR_BUNDLE_H_
#define COMMON_IO_CHECKPOINT_PUBLISH_TENSOR_BUNDLE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/io/checkpoint/disk.h"

namespace muster {

// Makes one checkpoint of what the TensorBundleWriters of `shard_count` shards
// have finished: gives their data files its names and writes one index for all.
//
// The checkpoint is there when the index is, which takes its place in one step.
// Where a checkpoint of this prefix exists, readers and crashes see the old one
// or the new one: the new data files are given names that the old ones do not
// have. On an error the old one stays, unless it is the last sync that failed,
// of which nobody knows what it did. What the writers left is gone in any case.
//   kNotFound            a shard has not been finished; names its file
//   kDataLoss            what a writer left is damaged
//   kAlreadyExists       two shards hold the same tensor, or the same slice
//   kFailedPrecondition  the slices of a tensor do not make it up, or differ in
//                        type; names the tensor and what is missing
//   others               the disk's
absl::Status PublishTensorBundle(Disk* disk, absl::string_view prefix,
                                 int shard_count);

// Removes what writers left for publishing `prefix`, whatever there is.
void RemoveBundleParts(Disk* disk, absl::string_view prefix, int shard_count);

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_PUBLISH_TENSOR_BUNDLE_H_
