#include "common/io/checkpoint/tensor_bundle_writer.h"

#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/hashes.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/io/checkpoint/bundle_files.h"
#include "common/io/checkpoint/bundle_index.h"
#include "common/io/checkpoint/bundle_placement.h"
#include "common/io/checkpoint/coding.h"

namespace muster {
namespace {

// All writes have this size and begin at pages.
constexpr size_t kBufferBytes = 4 << 20;
// The checksum is computed over pieces that stay in the cache until they are
// copied.
constexpr size_t kPieceBytes = 256 << 10;

absl::Span<const uint8_t> AsBytes(absl::string_view text) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()),
                             text.size());
}

absl::Status CheckName(absl::string_view name) {
  if (!name.empty() && name[0] != '\0') return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", absl::CHexEscape(name), "\" is not a valid name of a tensor"));
}

}  // namespace

TensorBundleWriter::TensorBundleWriter(Disk* disk, absl::string_view prefix,
                                       BundleShard shard, std::string data_path)
    : disk_(disk),
      folder_(FolderOf(prefix)),
      data_path_(std::move(data_path)),
      index_path_(PartIndexPath(prefix, shard.index, shard.count)),
      buffer_(Buffer::Allocate(kBufferBytes)),
      entries_(std::make_unique<std::map<std::string, proto::BundleEntry>>()) {}

absl::StatusOr<std::unique_ptr<TensorBundleWriter>> TensorBundleWriter::Create(
    Disk* disk, absl::string_view prefix, BundleShard shard) {
  if (BaseName(prefix).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", prefix, "\" names a folder, not a checkpoint"));
  }
  if (shard.count < 1 || shard.count > kShardCountMax || shard.index < 0 ||
      shard.index >= shard.count) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no shard ", shard.index, " of ", shard.count));
  }
  int new_count = shard.count;
  if (disk->CreatesAtomically(prefix)) {
    ASSIGN_OR_RETURN(new_count, NewShardCount(disk, prefix, shard.count));
  }
  std::unique_ptr<TensorBundleWriter> writer(new TensorBundleWriter(
      disk, prefix, shard,
      WrittenDataPath(*disk, prefix, shard.index, shard.count, new_count)));
  RETURN_IF_ERROR(disk->MakeFolder(writer->folder_));
  ASSIGN_OR_RETURN(writer->data_, disk->Create(writer->data_path_));
  return writer;
}

TensorBundleWriter::~TensorBundleWriter() {
  if (is_finished_) return;
  data_.reset();
  disk_->Remove(data_path_).IgnoreError();
  disk_->Remove(index_path_).IgnoreError();
}

absl::Status TensorBundleWriter::Add(absl::string_view name,
                                     const Tensor& tensor) {
  return AddSlice(name, tensor.shape(), TensorSlice::Whole(tensor.shape()),
                  tensor);
}

absl::Status TensorBundleWriter::AddSlice(absl::string_view name,
                                          const Shape& full_shape,
                                          const TensorSlice& slice,
                                          const Tensor& tensor) {
  RETURN_IF_ERROR(status_);
  if (!tensor.IsValid() || tensor.shape() != slice.shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": slice ", slice.ToString(), " cannot be a tensor of type ",
        tensor.IsValid() ? tensor.type().ToString() : "none"));
  }
  RETURN_IF_ERROR(Begin(name, {tensor.dtype(), full_shape}, slice));
  if (tensor.dtype() == DType::kString) {
    RETURN_IF_ERROR(AppendStrings(tensor.flat<std::string>()));
  } else {
    RETURN_IF_ERROR(AppendBytes({tensor.raw_data(), tensor.size_bytes()}));
  }
  return EndTensor();
}

absl::Status TensorBundleWriter::BeginTensor(absl::string_view name,
                                             const TensorType& full_type,
                                             const TensorSlice& slice) {
  RETURN_IF_ERROR(status_);
  if (full_type.dtype == DType::kString || full_type.dtype == DType::kInvalid) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": a tensor of ", DTypeName(full_type.dtype),
                     " cannot be written in pieces"));
  }
  return Begin(name, full_type, slice);
}

absl::Status TensorBundleWriter::Begin(absl::string_view name,
                                       const TensorType& full_type,
                                       const TensorSlice& slice) {
  MUSTER_CHECK(open_entry_ == nullptr && !is_finished_);
  RETURN_IF_ERROR(CheckName(name));
  if (absl::Status fits = CheckSlice(slice, full_type.shape); !fits.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", fits.message()));
  }
  RETURN_IF_ERROR(AddEntry(name, full_type, slice));
  open_entry_->set_offset(offset_);
  remaining_bytes_ = full_type.dtype == DType::kString
                         ? std::numeric_limits<int64_t>::max()
                         : slice.shape.element_count() *
                               static_cast<int64_t>(SizeOf(full_type.dtype));
  crc32c_ = 0;
  return absl::OkStatus();
}

absl::Status TensorBundleWriter::AddEntry(absl::string_view name,
                                          const TensorType& full_type,
                                          const TensorSlice& slice) {
  const bool is_whole = slice.IsWhole(full_type.shape);
  const auto [full, is_new] = entries_->try_emplace(std::string(name));
  if (is_new) {
    EncodeBundleType(full_type, &full->second);
  } else if (is_whole || full->second.slices_size() == 0) {
    return absl::AlreadyExistsError(absl::StrCat(name, " was added before"));
  }
  if (is_whole) {
    open_entry_ = &full->second;
    return absl::OkStatus();
  }
  proto::BundleEntry type;
  EncodeBundleType(full_type, &type);
  if (!HasSameBundleType(type, full->second)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": a slice of ", full_type.ToString(),
                     " has another type than earlier slices"));
  }
  const proto::BundleSlice encoded = EncodeSlice(slice, full_type.shape);
  const auto [part, is_new_slice] =
      entries_->try_emplace(SliceKey(name, encoded));
  if (!is_new_slice) {
    return absl::AlreadyExistsError(
        absl::StrCat(name, ": slice ", slice.ToString(), " was added before"));
  }
  *full->second.add_slices() = encoded;
  EncodeBundleType({full_type.dtype, slice.shape}, &part->second);
  open_entry_ = &part->second;
  return absl::OkStatus();
}

absl::Status TensorBundleWriter::AppendBytes(absl::Span<const uint8_t> bytes) {
  RETURN_IF_ERROR(status_);
  MUSTER_CHECK(open_entry_ != nullptr);
  if (static_cast<int64_t>(bytes.size()) > remaining_bytes_) {
    return Keep(absl::InvalidArgumentError(absl::StrCat(
        data_path_, ": a tensor has ", bytes.size() - remaining_bytes_,
        " bytes more than its type has")));
  }
  remaining_bytes_ -= bytes.size();
  while (!bytes.empty()) {
    const auto piece = bytes.subspan(0, kPieceBytes);
    crc32c_ = ExtendCrc32c(crc32c_, piece.data(), piece.size());
    RETURN_IF_ERROR(WriteBytes(piece));
    bytes.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

// The checksum covers the lengths as fixed-size integers, although they are
// written as varints, and the checksum of the lengths.
absl::Status TensorBundleWriter::AppendStrings(
    absl::Span<const std::string> strings) {
  std::string lengths;
  for (const std::string& value : strings) {
    crc32c_ = ExtendLengthCrc32c(crc32c_, value.size());
    AppendVarint(value.size(), &lengths);
    if (lengths.size() >= kPieceBytes) {
      RETURN_IF_ERROR(WriteBytes(AsBytes(lengths)));
      lengths.clear();
    }
  }
  RETURN_IF_ERROR(WriteBytes(AsBytes(lengths)));
  std::string checksum;
  AppendFixed(MaskCrc32c(crc32c_), &checksum);
  RETURN_IF_ERROR(AppendBytes(AsBytes(checksum)));
  for (const std::string& value : strings) {
    RETURN_IF_ERROR(AppendBytes(AsBytes(value)));
  }
  remaining_bytes_ = 0;
  return absl::OkStatus();
}

absl::Status TensorBundleWriter::EndTensor() {
  RETURN_IF_ERROR(status_);
  MUSTER_CHECK(open_entry_ != nullptr);
  if (remaining_bytes_ != 0) {
    return Keep(absl::InvalidArgumentError(
        absl::StrCat(data_path_, ": a tensor has ", remaining_bytes_,
                     " bytes less than its type has")));
  }
  open_entry_->set_size(offset_ - open_entry_->offset());
  open_entry_->set_crc32c(MaskCrc32c(crc32c_));
  open_entry_ = nullptr;
  return absl::OkStatus();
}

absl::Status TensorBundleWriter::Finish() {
  RETURN_IF_ERROR(status_);
  MUSTER_CHECK(open_entry_ == nullptr && !is_finished_);
  RETURN_IF_ERROR(FlushBuffer());
  RETURN_IF_ERROR(Keep(data_->Sync()));
  data_.reset();
  RETURN_IF_ERROR(Keep(WriteIndex()));
  is_finished_ = true;
  return absl::OkStatus();
}

// Not durable: the publisher writes and syncs its own index, and an unpublished
// shard need not survive.
absl::Status TensorBundleWriter::WriteIndex() {
  return WriteBundleIndex(disk_, index_path_, MakeBundleHeader(1), *entries_,
                          /*is_durable=*/false);
}

absl::Status TensorBundleWriter::WriteBytes(absl::Span<const uint8_t> bytes) {
  offset_ += bytes.size();
  while (!bytes.empty()) {
    const auto part = bytes.subspan(0, kBufferBytes - buffered_bytes_);
    std::memcpy(buffer_->data() + buffered_bytes_, part.data(), part.size());
    buffered_bytes_ += part.size();
    bytes.remove_prefix(part.size());
    if (buffered_bytes_ == kBufferBytes) RETURN_IF_ERROR(FlushBuffer());
  }
  return absl::OkStatus();
}

absl::Status TensorBundleWriter::FlushBuffer() {
  if (buffered_bytes_ == 0) return absl::OkStatus();
  const size_t size_bytes = std::exchange(buffered_bytes_, 0);
  return Keep(data_->Append({buffer_->data(), size_bytes}));
}

absl::Status TensorBundleWriter::Keep(absl::Status status) {
  if (status_.ok()) status_ = status;
  return status;
}

}  // namespace muster
