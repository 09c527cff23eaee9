#include "common/io/checkpoint/publish_tensor_bundle.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/io/checkpoint/bundle_files.h"
#include "common/io/checkpoint/bundle_index.h"
#include "common/io/checkpoint/bundle_placement.h"
#include "common/io/checkpoint/tensor_slice.h"
#include "proto/checkpoint.pb.h"

namespace muster {
namespace {

using Entries = std::map<std::string, proto::BundleEntry>;

absl::Status CheckDataFile(Disk* disk, const std::string& path,
                           const Entries& entries) {
  int64_t size_bytes = 0;
  for (const auto& [key, entry] : entries) size_bytes += entry.size();
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, disk->Open(path));
  if (file->size_bytes() == size_bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " has ", file->size_bytes(),
                                          " bytes; expected ", size_bytes));
}

absl::Status MergeEntry(const std::string& key, int shard_index,
                        proto::BundleEntry entry, Entries* merged) {
  entry.set_shard_id(shard_index);
  const auto [found, is_new] = merged->try_emplace(key);
  if (is_new) {
    found->second = std::move(entry);
    return absl::OkStatus();
  }
  if (IsSliceKey(key) || entry.slices_size() == 0 ||
      found->second.slices_size() == 0) {
    return absl::AlreadyExistsError(
        IsSliceKey(key)
            ? absl::StrCat("shard ", shard_index,
                           " holds a slice that another shard has")
            : absl::StrCat(key, " is in two shards; one of them is shard ",
                           shard_index));
  }
  if (!HasSameBundleType(entry, found->second)) {
    return absl::FailedPreconditionError(absl::StrCat(
        key, ": shard ", shard_index, " holds slices of another type"));
  }
  found->second.mutable_slices()->MergeFrom(entry.slices());
  return absl::OkStatus();
}

absl::Status CheckSlices(const Entries& entries) {
  for (const auto& [key, entry] : entries) {
    if (entry.slices_size() == 0) continue;
    ASSIGN_OR_RETURN(const Shape full, DecodeBundleShape(entry.shape()));
    std::vector<TensorSlice> slices;
    for (const proto::BundleSlice& encoded : entry.slices()) {
      ASSIGN_OR_RETURN(TensorSlice slice, DecodeSlice(encoded, full));
      slices.push_back(std::move(slice));
    }
    if (absl::Status whole = CheckPartition(slices, full); !whole.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat(key, ": ", whole.message()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Entries> MergeParts(Disk* disk, absl::string_view prefix,
                                   int shard_count, int new_count) {
  Entries merged;
  for (int shard = 0; shard < shard_count; ++shard) {
    ASSIGN_OR_RETURN(
        BundleIndex part,
        ReadBundleIndex(disk, PartIndexPath(prefix, shard, shard_count)));
    RETURN_IF_ERROR(CheckDataFile(
        disk, WrittenDataPath(*disk, prefix, shard, shard_count, new_count),
        part.entries));
    for (auto& [key, entry] : part.entries) {
      RETURN_IF_ERROR(MergeEntry(key, shard, std::move(entry), &merged));
    }
  }
  RETURN_IF_ERROR(CheckSlices(merged));
  return merged;
}

void RemoveDataFiles(Disk* disk, absl::string_view prefix, int count) {
  for (int shard = 0; shard < count; ++shard) {
    disk->Remove(BundleDataPath(prefix, shard, count)).IgnoreError();
  }
}

absl::Status PlaceDataFiles(Disk* disk, absl::string_view prefix,
                            int part_count, int shard_count) {
  for (int shard = 0; shard < part_count; ++shard) {
    const std::string data_path = BundleDataPath(prefix, shard, shard_count);
    if (disk->CreatesAtomically(data_path)) continue;
    RETURN_IF_ERROR(
        disk->Rename(PartDataPath(prefix, shard, part_count), data_path));
  }
  for (int shard = part_count; shard < shard_count; ++shard) {
    ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> empty,
                     disk->Create(BundleDataPath(prefix, shard, shard_count)));
    RETURN_IF_ERROR(empty->Sync());
  }
  return disk->SyncFolder(FolderOf(prefix));
}

absl::Status PlaceIndex(Disk* disk, absl::string_view prefix, int shard_count,
                        const Entries& entries) {
  const std::string index_path = BundleIndexPath(prefix);
  const proto::BundleHeader header = MakeBundleHeader(shard_count);
  if (disk->CreatesAtomically(index_path)) {
    return WriteBundleIndex(disk, index_path, header, entries,
                            /*is_durable=*/true);
  }
  const std::string beside = TemporaryPath(index_path);
  absl::Status status = WriteBundleIndex(disk, beside, header, entries,
                                         /*is_durable=*/true);
  if (status.ok()) status = disk->Rename(beside, index_path);
  if (!status.ok()) {
    disk->Remove(beside).IgnoreError();
    return status;
  }
  return disk->SyncFolder(FolderOf(prefix));
}

// Data files are made durable before the index, so that no index refers to data
// that a power failure can lose.
absl::Status PlaceFiles(Disk* disk, absl::string_view prefix, int part_count,
                        int shard_count, const Entries& entries) {
  RETURN_IF_ERROR(PlaceDataFiles(disk, prefix, part_count, shard_count));
  return PlaceIndex(disk, prefix, shard_count, entries);
}

}  // namespace

absl::Status PublishTensorBundle(Disk* disk, absl::string_view prefix,
                                 int shard_count) {
  MUSTER_CHECK(shard_count >= 1 && shard_count < kShardCountMax);
  ASSIGN_OR_RETURN(const int old_count, PublishedShardCount(disk, prefix));
  ASSIGN_OR_RETURN(const int new_count,
                   NewShardCount(disk, prefix, shard_count));
  const absl::StatusOr<Entries> entries =
      MergeParts(disk, prefix, shard_count, new_count);
  absl::Status status = entries.status();
  if (status.ok()) {
    status = PlaceFiles(disk, prefix, shard_count, new_count, *entries);
  }
  if (!status.ok()) {
    // If the last sync failed, the new index may be in place.
    const absl::StatusOr<int> placed = PublishedShardCount(disk, prefix);
    if (placed.ok() && *placed != new_count) {
      RemoveDataFiles(disk, prefix, new_count);
    }
    RemoveBundleParts(disk, prefix, shard_count);
    return status;
  }
  RemoveDataFiles(disk, prefix, old_count);
  for (int shard = 0; shard < shard_count; ++shard) {
    disk->Remove(PartIndexPath(prefix, shard, shard_count)).IgnoreError();
  }
  return absl::OkStatus();
}

void RemoveBundleParts(Disk* disk, absl::string_view prefix, int shard_count) {
  const bool has_final_names = disk->CreatesAtomically(prefix);
  if (has_final_names) {
    // Removes them only if they cannot belong to a published checkpoint.
    const auto new_count = NewShardCount(disk, prefix, shard_count);
    if (new_count.ok()) RemoveDataFiles(disk, prefix, *new_count);
  }
  for (int shard = 0; shard < shard_count; ++shard) {
    if (!has_final_names) {
      disk->Remove(PartDataPath(prefix, shard, shard_count)).IgnoreError();
    }
    disk->Remove(PartIndexPath(prefix, shard, shard_count)).IgnoreError();
  }
}

}  // namespace muster
