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
#include "common/io/storage/disk.h"
#include "proto/checkpoint.pb.h"

// Reading and writing the index of a checkpoint, for writers, publishers and
// readers.
namespace muster {

proto::BundleHeader MakeBundleHeader(int shard_count);

//   kInvalidArgument  the rank is unknown, or as Shape::Create()
absl::StatusOr<Shape> DecodeBundleShape(const proto::BundleShape& shape);

void EncodeBundleType(const TensorType& type, proto::BundleEntry* entry);
bool HasSameBundleType(const proto::BundleEntry& a,
                       const proto::BundleEntry& b);

// Extends a checksum by the length of a string, as in TensorFlow's checkpoints.
uint32_t ExtendLengthCrc32c(uint32_t crc, uint64_t length);

// Writes the table. Syncs it if `is_durable`, so that it survives a power
// failure.
absl::Status WriteBundleIndex(
    Disk* disk, absl::string_view path, const proto::BundleHeader& header,
    const std::map<std::string, proto::BundleEntry>& entries, bool is_durable);

struct BundleIndex {
  proto::BundleHeader header;
  std::map<std::string, proto::BundleEntry> entries;
};

// Reads and verifies the table and the header. Verifies that every entry can be
// parsed and refers to an existing shard, but not the contents of entries.
//   kNotFound       the file does not exist
//   kDataLoss       the file is damaged; the message names the file and the
//                   offset or the key
//   kUnimplemented  written on a big-endian machine or for newer readers
absl::StatusOr<BundleIndex> ReadBundleIndex(Disk* disk, absl::string_view path);

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_BUNDLE_INDEX_H_
