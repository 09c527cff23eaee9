#ifndef COMMON_IO_CHECKPOINT_BUNDLE_INDEX_H_
#define COMMON_IO_CHECKPOINT_BUNDLE_INDEX_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/disk.h"
#include "proto/checkpoint.pb.h"

// The index of a checkpoint as the table that it is: what its writers, its
// publisher and its reader share.
namespace muster {

proto::BundleHeader MakeBundleHeader(int shard_count);

//   kInvalidArgument  unknown, or as Shape::Create()
absl::StatusOr<Shape> DecodeBundleShape(const proto::BundleShape& shape);

void EncodeBundleType(const TensorType& type, proto::BundleEntry* entry);
bool HasSameBundleType(const proto::BundleEntry& a,
                       const proto::BundleEntry& b);

// Extends a checksum by the length of a string, as checkpoints do it.
uint32_t ExtendLengthCrc32c(uint32_t crc, uint64_t length);

// Writes the table, and syncs it if it has to outlive a power cut.
absl::Status WriteBundleIndex(
    Disk* disk, absl::string_view path, const proto::BundleHeader& header,
    const std::map<std::string, proto::BundleEntry>& entries, bool is_durable);

struct BundleIndex {
  proto::BundleHeader header;
  std::map<std::string, proto::BundleEntry> entries;
};

// Checks the table, the header, and that every entry can be parsed and is in a
// shard that there is; not what the entries say.
//   kNotFound       no such file
//   kDataLoss       damaged; names the file and the offset or the key
//   kUnimplemented  big-endian, or for newer readers
absl::StatusOr<BundleIndex> ReadBundleIndex(Disk* disk, absl::string_view path);

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_BUNDLE_INDEX_H_
