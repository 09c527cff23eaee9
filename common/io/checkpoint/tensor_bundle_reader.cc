#include "common/io/checkpoint/tensor_bundle_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/did_you_mean.h"
#include "common/core/base/hashes.h"
#include "common/core/base/status_macros.h"
#include "common/io/checkpoint/bundle_files.h"
#include "common/io/checkpoint/bundle_index.h"
#include "common/io/checkpoint/coding.h"
#include "common/io/checkpoint/tensor_slice.h"
#include "proto/checkpoint.pb.h"

namespace muster {
namespace {

// More than any partitioner creates. Bounds the cost of a hostile index.
constexpr int kSliceCountMax = 1 << 16;
// TensorFlow's DT_VARIANT. Its checksum is not that of the stored bytes.
constexpr int kVariantDType = 21;

}  // namespace

absl::StatusOr<std::unique_ptr<TensorBundleReader>> TensorBundleReader::Open(
    Disk* disk, absl::string_view prefix, const Options& options) {
  MUSTER_CHECK(options.piece_bytes > 0 && options.piece_bytes % 64 == 0);
  std::unique_ptr<TensorBundleReader> reader(
      new TensorBundleReader(prefix, options));
  RETURN_IF_ERROR(reader->Load(disk));
  return reader;
}

absl::Status TensorBundleReader::Load(Disk* disk) {
  index_path_ = BundleIndexPath(prefix_);
  ASSIGN_OR_RETURN(const BundleIndex index, ReadBundleIndex(disk, index_path_));
  for (const auto& [key, entry] : index.entries) {
    if (IsSliceKey(key)) continue;
    if (absl::Status status = AddTensor(key, entry, index); !status.ok()) {
      return absl::DataLossError(absl::StrCat(
          index_path_, ": ", absl::CHexEscape(key), ": ", status.message()));
    }
  }
  return OpenDataFiles(disk, index.header.num_shards());
}

absl::Status TensorBundleReader::AddTensor(const std::string& name,
                                           const proto::BundleEntry& entry,
                                           const BundleIndex& index) {
  StoredTensor tensor;
  tensor.name = name;
  tensor.tensorflow_dtype = entry.dtype();
  std::vector<Extent> extents;
  const bool is_known = IsKnownDType(entry.dtype()) &&
                        entry.shape().dim_size() <= Shape::kRankMax;
  if (is_known) {
    tensor.dtype = static_cast<DType>(entry.dtype());
    ASSIGN_OR_RETURN(tensor.shape, DecodeBundleShape(entry.shape()));
  }
  if (entry.slices_size() == 0) {
    tensor.slices.push_back(TensorSlice::Whole(tensor.shape));
    extents.push_back({.shard = entry.shard_id(),
                       .offset = entry.offset(),
                       .size = entry.size(),
                       .masked_crc32c = entry.crc32c()});
  } else {
    RETURN_IF_ERROR(AddSlices(entry, index, &tensor, &extents));
  }
  for (size_t i = 0; i < extents.size(); ++i) {
    const auto element_bytes = static_cast<int64_t>(SizeOf(tensor.dtype));
    const int64_t count = tensor.slices[i].shape.element_count();
    // A string takes at least one byte for its length.
    const bool has_size =
        !is_known ||
        (tensor.dtype == DType::kString
             ? count <= extents[i].size
             : count <= std::numeric_limits<int64_t>::max() / element_bytes &&
                   count * element_bytes == extents[i].size);
    if (extents[i].offset < 0 || extents[i].size < 0 || !has_size) {
      return absl::DataLossError(
          absl::StrCat(extents[i].size, " bytes at offset ", extents[i].offset,
                       " cannot be slice ", tensor.slices[i].ToString(), " of ",
                       DTypeName(tensor.dtype), tensor.shape.ToString()));
    }
  }
  tensors_.push_back(std::move(tensor));
  extents_.push_back(std::move(extents));
  return absl::OkStatus();
}

absl::Status TensorBundleReader::AddSlices(const proto::BundleEntry& entry,
                                           const BundleIndex& index,
                                           StoredTensor* tensor,
                                           std::vector<Extent>* extents) {
  if (entry.slices_size() > kSliceCountMax) {
    return absl::DataLossError(absl::StrCat("it has ", entry.slices_size(),
                                            " slices; expected at most ",
                                            kSliceCountMax));
  }
  for (const proto::BundleSlice& encoded : entry.slices()) {
    TensorSlice slice;
    if (tensor->dtype != DType::kInvalid) {
      ASSIGN_OR_RETURN(slice, DecodeSlice(encoded, tensor->shape));
    }
    const auto found = index.entries.find(SliceKey(tensor->name, encoded));
    proto::BundleEntry type;
    EncodeBundleType({tensor->dtype, slice.shape}, &type);
    if (found == index.entries.end() ||
        (tensor->dtype != DType::kInvalid &&
         !HasSameBundleType(found->second, type))) {
      return absl::DataLossError(absl::StrCat(
          "slice ", slice.ToString(), " of ", tensor->shape.ToString(),
          " is missing or of another type"));
    }
    tensor->slices.push_back(std::move(slice));
    extents->push_back({.shard = found->second.shard_id(),
                        .offset = found->second.offset(),
                        .size = found->second.size(),
                        .masked_crc32c = found->second.crc32c()});
  }
  return tensor->dtype == DType::kInvalid
             ? absl::OkStatus()
             : CheckPartition(tensor->slices, tensor->shape);
}

// Verifies that extents do not overlap and end at the end of the file, which
// bounds their total size by the size of the files.
absl::Status TensorBundleReader::OpenDataFiles(Disk* disk, int shard_count) {
  std::vector<std::vector<Extent>> by_shard(shard_count);
  for (const std::vector<Extent>& extents : extents_) {
    for (const Extent& extent : extents) {
      by_shard[extent.shard].push_back(extent);
    }
  }
  data_.resize(shard_count);
  for (int shard = 0; shard < shard_count; ++shard) {
    std::vector<Extent>& extents = by_shard[shard];
    data_paths_.push_back(BundleDataPath(prefix_, shard, shard_count));
    if (extents.empty()) continue;
    ASSIGN_OR_RETURN(data_[shard], disk->Open(data_paths_[shard]));
    std::sort(
        extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
          return std::pair(a.offset, a.size) < std::pair(b.offset, b.size);
        });
    const int64_t size_bytes = data_[shard]->size_bytes();
    int64_t end = 0;
    for (const Extent& extent : extents) {
      if (extent.offset < end || extent.offset > size_bytes ||
          extent.size > size_bytes - extent.offset) {
        return absl::DataLossError(absl::StrCat(
            data_paths_[shard], ", of ", size_bytes, " bytes, cannot hold ",
            extent.size, " bytes at offset ", extent.offset,
            ", as its index declares"));
      }
      end = extent.offset + extent.size;
    }
    if (end != size_bytes) {
      return absl::DataLossError(
          absl::StrCat(data_paths_[shard], " has ", size_bytes - end,
                       " bytes after its last tensor, at offset ", end));
    }
  }
  return absl::OkStatus();
}

const StoredTensor* TensorBundleReader::Find(absl::string_view name) const {
  const auto found = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const StoredTensor& tensor, absl::string_view wanted) {
        return tensor.name < wanted;
      });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

absl::StatusOr<const StoredTensor*> TensorBundleReader::FindReadable(
    absl::string_view name) const {
  const StoredTensor* const tensor = Find(name);
  if (tensor == nullptr) {
    std::vector<absl::string_view> names;
    for (const StoredTensor& other : tensors_) names.push_back(other.name);
    return absl::NotFoundError(absl::StrCat(prefix_, " has no tensor ", name,
                                            DidYouMean(name, names)));
  }
  if (tensor->dtype == DType::kInvalid) {
    return absl::UnimplementedError(
        absl::StrCat(prefix_, ": ", name, " has TensorFlow's dtype ",
                     tensor->tensorflow_dtype, " or more dimensions than ",
                     Shape::kRankMax, ", which Muster does not support"));
  }
  return tensor;
}

absl::Status TensorBundleReader::Damage(const Extent& extent,
                                        absl::string_view name,
                                        absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(
      data_paths_[extent.shard], " is damaged in the ", extent.size,
      " bytes at offset ", extent.offset, ", tensor ", name, ": ", what));
}

absl::StatusOr<Tensor> TensorBundleReader::Read(absl::string_view name) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, FindReadable(name));
  return ReadSlice(name, TensorSlice::Whole(tensor->shape));
}

absl::StatusOr<Tensor> TensorBundleReader::ReadSlice(
    absl::string_view name, const TensorSlice& slice) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, FindReadable(name));
  if (absl::Status fits = CheckSlice(slice, tensor->shape); !fits.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", fits.message()));
  }
  Tensor result(tensor->dtype, slice.shape);
  RETURN_IF_ERROR(tensor->dtype == DType::kString
                      ? ReadStringSlice(*tensor, slice, &result)
                      : ReadNumberSlice(*tensor, slice, &result));
  return result;
}

absl::Status TensorBundleReader::ReadPieces(absl::string_view name,
                                            const TensorSlice& slice,
                                            PieceVisitor sink) const {
  ASSIGN_OR_RETURN(const StoredTensor* tensor, FindReadable(name));
  if (tensor->dtype == DType::kString) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": strings cannot be read in pieces"));
  }
  if (absl::Status fits = CheckSlice(slice, tensor->shape); !fits.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", fits.message()));
  }
  const std::vector<Extent>& extents = ExtentsOf(*tensor);
  for (size_t i = 0; i < extents.size(); ++i) {
    if (!Intersect(tensor->slices[i], slice).has_value()) continue;
    RETURN_IF_ERROR(
        ReadRuns(*tensor, extents[i], tensor->slices[i], slice, sink));
  }
  return absl::OkStatus();
}

absl::Status TensorBundleReader::ReadNumbers(
    const StoredTensor& tensor, const Extent& extent,
    absl::FunctionRef<uint8_t*(int64_t offset)> place,
    PieceVisitor visit) const {
  uint32_t crc = 0;
  for (int64_t offset = 0; offset < extent.size;) {
    const int64_t size =
        std::min<int64_t>(options_.piece_bytes, extent.size - offset);
    const auto piece = absl::MakeSpan(place(offset), size);
    RETURN_IF_ERROR(data_[extent.shard]->ReadAt(extent.offset + offset, piece));
    crc = ExtendCrc32c(crc, piece.data(), piece.size());
    if (tensor.dtype == DType::kBool &&
        std::any_of(piece.begin(), piece.end(),
                    [](uint8_t value) { return value > 1; })) {
      return Damage(extent, tensor.name, "a bool is neither 0 nor 1");
    }
    RETURN_IF_ERROR(visit(offset, piece));
    offset += size;
  }
  return MaskCrc32c(crc) == extent.masked_crc32c
             ? absl::OkStatus()
             : Damage(extent, tensor.name, "the checksum does not match");
}

absl::Status TensorBundleReader::ReadRuns(const StoredTensor& tensor,
                                          const Extent& extent,
                                          const TensorSlice& stored,
                                          const TensorSlice& wanted,
                                          PieceVisitor sink) const {
  const auto element_bytes = static_cast<int64_t>(SizeOf(tensor.dtype));
  std::vector<uint8_t> buffer(
      std::min<int64_t>(options_.piece_bytes, extent.size));
  SliceRuns runs(stored, wanted);
  SliceRuns::Run run;
  bool has_run = runs.Next(&run);
  return ReadNumbers(
      tensor, extent, [&](int64_t) { return buffer.data(); },
      [&](int64_t offset, absl::Span<const uint8_t> piece) {
        const int64_t end = offset + static_cast<int64_t>(piece.size());
        while (has_run && run.source * element_bytes < end) {
          const int64_t run_begin = run.source * element_bytes;
          const int64_t run_end = run_begin + run.count * element_bytes;
          const int64_t from = std::max(offset, run_begin);
          const int64_t to = std::min(end, run_end);
          RETURN_IF_ERROR(sink(run.target * element_bytes + from - run_begin,
                               piece.subspan(from - offset, to - from)));
          if (run_end > end) break;
          has_run = runs.Next(&run);
        }
        return absl::OkStatus();
      });
}

absl::Status TensorBundleReader::ReadNumberSlice(const StoredTensor& tensor,
                                                 const TensorSlice& wanted,
                                                 Tensor* result) const {
  const auto element_bytes = static_cast<int64_t>(SizeOf(tensor.dtype));
  uint8_t* const data = result->mutable_raw_data();
  const std::vector<Extent>& extents = ExtentsOf(tensor);
  for (size_t i = 0; i < extents.size(); ++i) {
    const TensorSlice& stored = tensor.slices[i];
    SliceRuns::Run run;
    const bool has_run = SliceRuns(stored, wanted).Next(&run);
    const int64_t stored_count = stored.shape.element_count();
    if (!has_run && stored_count > 0) continue;
    // The whole stored slice is contiguous in the result, so no copy is needed.
    // An empty slice is read, too, to verify its checksum.
    if (run.count == stored_count) {
      RETURN_IF_ERROR(ReadNumbers(
          tensor, extents[i],
          [&](int64_t offset) {
            return data + run.target * element_bytes + offset;
          },
          [](int64_t, absl::Span<const uint8_t>) { return absl::OkStatus(); }));
      continue;
    }
    RETURN_IF_ERROR(
        ReadRuns(tensor, extents[i], stored, wanted,
                 [&](int64_t offset, absl::Span<const uint8_t> bytes) {
                   std::memcpy(data + offset, bytes.data(), bytes.size());
                   return absl::OkStatus();
                 }));
  }
  return absl::OkStatus();
}

absl::Status TensorBundleReader::ReadStringSlice(const StoredTensor& tensor,
                                                 const TensorSlice& wanted,
                                                 Tensor* result) const {
  const absl::Span<std::string> target = result->mutable_flat<std::string>();
  const std::vector<Extent>& extents = ExtentsOf(tensor);
  for (size_t i = 0; i < extents.size(); ++i) {
    const TensorSlice& stored = tensor.slices[i];
    if (extents.size() > 1 && !Intersect(stored, wanted).has_value()) continue;
    ASSIGN_OR_RETURN(
        std::vector<std::string> strings,
        ReadStrings(tensor, extents[i], stored.shape.element_count()));
    SliceRuns runs(stored, wanted);
    for (SliceRuns::Run run; runs.Next(&run);) {
      for (int64_t element = 0; element < run.count; ++element) {
        target[run.target + element] = std::move(strings[run.source + element]);
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> TensorBundleReader::ReadStrings(
    const StoredTensor& tensor, const Extent& extent, int64_t count) const {
  std::string content(extent.size, '\0');
  RETURN_IF_ERROR(data_[extent.shard]->ReadAt(
      extent.offset, absl::MakeSpan(reinterpret_cast<uint8_t*>(content.data()),
                                    content.size())));
  absl::string_view rest = content;
  std::vector<uint64_t> lengths(count);
  uint32_t crc = 0;
  for (uint64_t& length : lengths) {
    if (!ConsumeVarint(&rest, &length)) {
      return Damage(extent, tensor.name,
                    "the lengths of strings are truncated");
    }
    crc = ExtendLengthCrc32c(crc, length);
  }
  if (rest.size() < sizeof(uint32_t) ||
      LoadFixed<uint32_t>(rest.data()) != MaskCrc32c(crc)) {
    return Damage(extent, tensor.name,
                  "the checksum of the lengths does not match");
  }
  crc = ExtendCrc32c(crc, rest.data(), rest.size());
  rest.remove_prefix(sizeof(uint32_t));
  if (MaskCrc32c(crc) != extent.masked_crc32c) {
    return Damage(extent, tensor.name, "the checksum does not match");
  }
  std::vector<std::string> strings;
  strings.reserve(count);
  for (const uint64_t length : lengths) {
    if (length > rest.size()) {
      return Damage(extent, tensor.name, "a string is truncated");
    }
    strings.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  if (rest.empty()) return strings;
  return Damage(extent, tensor.name, "bytes follow the last string");
}

absl::Status TensorBundleReader::Verify() const {
  std::vector<uint8_t> buffer(options_.piece_bytes);
  for (const StoredTensor& tensor : tensors_) {
    if (tensor.tensorflow_dtype == kVariantDType) continue;
    const std::vector<Extent>& extents = ExtentsOf(tensor);
    for (size_t i = 0; i < extents.size(); ++i) {
      if (tensor.dtype == DType::kString) {
        RETURN_IF_ERROR(ReadStrings(tensor, extents[i],
                                    tensor.slices[i].shape.element_count())
                            .status());
        continue;
      }
      RETURN_IF_ERROR(ReadNumbers(
          tensor, extents[i], [&](int64_t) { return buffer.data(); },
          [](int64_t, absl::Span<const uint8_t>) { return absl::OkStatus(); }));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
