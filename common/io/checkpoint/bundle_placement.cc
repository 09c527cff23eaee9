#include "common/io/checkpoint/bundle_placement.h"

#include "absl/status/status.h"
#include "common/core/base/status_macros.h"
#include "common/io/checkpoint/bundle_files.h"
#include "common/io/checkpoint/bundle_index.h"
#include "proto/checkpoint.pb.h"

namespace muster {

absl::StatusOr<int> PublishedShardCount(Disk* disk, absl::string_view prefix) {
  const absl::StatusOr<BundleIndex> index =
      ReadBundleIndex(disk, BundleIndexPath(prefix));
  if (index.ok()) return index->header.num_shards();
  const absl::Status& status = index.status();
  const bool has_none = absl::IsNotFound(status) || absl::IsDataLoss(status) ||
                        absl::IsUnimplemented(status);
  if (has_none) return 0;
  return status;
}

absl::StatusOr<int> NewShardCount(Disk* disk, absl::string_view prefix,
                                  int shard_count) {
  ASSIGN_OR_RETURN(const int old_count, PublishedShardCount(disk, prefix));
  return shard_count + (old_count == shard_count ? 1 : 0);
}

std::string WrittenDataPath(const Disk& disk, absl::string_view prefix,
                            int shard_index, int shard_count, int new_count) {
  return disk.CreatesAtomically(prefix)
             ? BundleDataPath(prefix, shard_index, new_count)
             : PartDataPath(prefix, shard_index, shard_count);
}

}  // namespace muster
