#include "common/io/checkpoint/bundle_index.h"

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/hashes.h"
#include "common/core/base/status_macros.h"
#include "common/io/checkpoint/bundle_files.h"
#include "common/io/checkpoint/table_reader.h"
#include "common/io/checkpoint/table_writer.h"

namespace muster {
namespace {

// The version that TensorFlow writes, and the newest that this code reads.
constexpr int kFormatVersion = 1;

absl::Status ParseHeader(absl::string_view path, absl::string_view value,
                         proto::BundleHeader* header) {
  if (!header->ParseFromArray(value.data(), static_cast<int>(value.size())) ||
      header->num_shards() < 0 || header->num_shards() > kShardCountMax) {
    return absl::DataLossError(absl::StrCat(path, ": its header is invalid"));
  }
  if (header->endianness() != proto::BundleHeader::LITTLE) {
    return absl::UnimplementedError(
        absl::StrCat(path, " was written on a big-endian machine"));
  }
  if (header->version().min_consumer() > kFormatVersion) {
    return absl::UnimplementedError(
        absl::StrCat(path, " requires a reader of format version ",
                     header->version().min_consumer(), "; this is version ",
                     kFormatVersion));
  }
  return absl::OkStatus();
}

}  // namespace

proto::BundleHeader MakeBundleHeader(int shard_count) {
  proto::BundleHeader header;
  header.set_num_shards(shard_count);
  header.mutable_version()->set_producer(kFormatVersion);
  return header;
}

absl::StatusOr<Shape> DecodeBundleShape(const proto::BundleShape& shape) {
  if (shape.unknown_rank()) {
    return absl::InvalidArgumentError("the rank of a tensor is unknown");
  }
  std::vector<int64_t> dims;
  for (const auto& dim : shape.dim()) dims.push_back(dim.size());
  return Shape::Create(dims, /*allow_unknown=*/false);
}

void EncodeBundleType(const TensorType& type, proto::BundleEntry* entry) {
  entry->set_dtype(static_cast<int>(type.dtype));
  entry->mutable_shape()->Clear();
  for (const int64_t dim : type.shape.dims()) {
    entry->mutable_shape()->add_dim()->set_size(dim);
  }
}

bool HasSameBundleType(const proto::BundleEntry& a,
                       const proto::BundleEntry& b) {
  if (a.dtype() != b.dtype()) return false;
  if (a.shape().dim_size() != b.shape().dim_size()) return false;
  for (int axis = 0; axis < a.shape().dim_size(); ++axis) {
    if (a.shape().dim(axis).size() != b.shape().dim(axis).size()) return false;
  }
  return true;
}

uint32_t ExtendLengthCrc32c(uint32_t crc, uint64_t length) {
  if (length > std::numeric_limits<uint32_t>::max()) {
    return ExtendCrc32c(crc, &length, sizeof(length));
  }
  const auto short_length = static_cast<uint32_t>(length);
  return ExtendCrc32c(crc, &short_length, sizeof(short_length));
}

absl::Status WriteBundleIndex(
    Disk* disk, absl::string_view path, const proto::BundleHeader& header,
    const std::map<std::string, proto::BundleEntry>& entries, bool is_durable) {
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                   disk->Create(path));
  TableWriter table(file.get());
  RETURN_IF_ERROR(table.Add("", header.SerializeAsString()));
  for (const auto& [key, entry] : entries) {
    RETURN_IF_ERROR(table.Add(key, entry.SerializeAsString()));
  }
  RETURN_IF_ERROR(table.Finish());
  return is_durable ? file->Sync() : file->Close();
}

absl::StatusOr<BundleIndex> ReadBundleIndex(Disk* disk,
                                            absl::string_view path) {
  BundleIndex index;
  bool has_header = false;
  RETURN_IF_ERROR(ReadTable(
      disk, path, [&](absl::string_view key, absl::string_view value) {
        if (!has_header) {
          has_header = true;
          if (!key.empty()) {
            return absl::DataLossError(absl::StrCat(path, " has no header"));
          }
          return ParseHeader(path, value, &index.header);
        }
        proto::BundleEntry entry;
        if (!entry.ParseFromArray(value.data(),
                                  static_cast<int>(value.size())) ||
            entry.shard_id() < 0 ||
            entry.shard_id() >= index.header.num_shards()) {
          return absl::DataLossError(absl::StrCat(path, ": the entry of \"",
                                                  absl::CHexEscape(key),
                                                  "\" is invalid"));
        }
        index.entries.emplace_hint(index.entries.end(), std::string(key),
                                   std::move(entry));
        return absl::OkStatus();
      }));
  if (has_header) return index;
  return absl::DataLossError(absl::StrCat(path, " has no header"));
}

}  // namespace muster
