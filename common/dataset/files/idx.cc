#include "common/dataset/files/idx.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/dataset/files/file_table.h"
#include "common/dataset/files/input_file.h"
#include "common/dataset/row_tables.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

struct IdxHeader {
  uint8_t type_code = 0;
  size_t value_bytes = 0;  // Of one value in the file.
  TensorType type;         // As ReadIdx() returns it.
};

uint32_t BigEndian32(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 |
         uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

bool ResolveType(uint8_t code, IdxHeader* header) {
  header->type_code = code;
  switch (code) {
    case 0x08:
      header->value_bytes = 1;
      header->type.dtype = DType::kUint8;
      return true;
    case 0x09:
      header->value_bytes = 1;
      header->type.dtype = DType::kInt32;
      return true;
    case 0x0b:
      header->value_bytes = 2;
      header->type.dtype = DType::kInt32;
      return true;
    case 0x0c:
      header->value_bytes = 4;
      header->type.dtype = DType::kInt32;
      return true;
    case 0x0d:
      header->value_bytes = 4;
      header->type.dtype = DType::kFloat32;
      return true;
    case 0x0e:
      header->value_bytes = 8;
      header->type.dtype = DType::kFloat64;
      return true;
    default:
      return false;
  }
}

absl::StatusOr<IdxHeader> ReadIdxHeader(InputFile* file) {
  std::array<uint8_t, 4> magic;
  ASSIGN_OR_RETURN(const size_t magic_bytes,
                   file->Read(magic.data(), magic.size()));
  IdxHeader header;
  if (magic_bytes < magic.size() || magic[0] != 0 || magic[1] != 0 ||
      !ResolveType(magic[2], &header)) {
    return FileError(
        *file,
        absl::StrFormat("is not IDX: expected it to begin with 00 00, a "
                        "type (08, 09, 0b, 0c, 0d or 0e) and a rank; "
                        "found %02x %02x %02x %02x (%d bytes)",
                        magic[0], magic[1], magic[2], magic[3], magic_bytes));
  }
  const int rank = magic[3];
  if (rank < 1 || rank > Shape::kRankMax) {
    return FileError(*file,
                     absl::StrCat("has ", rank, " dimensions; expected 1 to ",
                                  Shape::kRankMax));
  }
  std::array<uint8_t, 4 * Shape::kRankMax> extents;
  ASSIGN_OR_RETURN(const size_t extent_bytes,
                   file->Read(extents.data(), 4 * rank));
  if (extent_bytes < static_cast<size_t>(4 * rank)) {
    return FileError(*file, "ends within its header");
  }
  std::vector<int64_t> dims;
  for (int axis = 0; axis < rank; ++axis) {
    dims.push_back(BigEndian32(&extents[4 * axis]));
  }
  absl::StatusOr<Shape> shape = Shape::Create(dims, /*allow_unknown=*/false);
  if (!shape.ok()) return FileError(*file, shape.status().message());
  header.type.shape = *std::move(shape);
  return header;
}

template <typename Bits>
Bits BigEndian(const uint8_t* bytes) {
  Bits value = 0;
  for (size_t i = 0; i < sizeof(Bits); ++i) {
    value = static_cast<Bits>(value << 8 | bytes[i]);
  }
  return value;
}

// Converts the bytes of the file to the byte order of this machine.
Tensor DecodeValues(const IdxHeader& header,
                    const std::vector<uint8_t>& bytes) {
  Tensor tensor(header.type.dtype, header.type.shape);
  const uint8_t* in = bytes.data();
  const auto fill = [&]<typename Bits>(auto values) {
    using T = typename decltype(values)::value_type;
    for (T& value : values) {
      if constexpr (std::is_floating_point_v<T>) {
        value = std::bit_cast<T>(BigEndian<Bits>(in));
      } else {
        value = static_cast<std::make_signed_t<Bits>>(BigEndian<Bits>(in));
      }
      in += sizeof(Bits);
    }
  };
  switch (header.type_code) {
    case 0x09:
      fill.operator()<uint8_t>(tensor.mutable_flat<int32_t>());
      break;
    case 0x0b:
      fill.operator()<uint16_t>(tensor.mutable_flat<int32_t>());
      break;
    case 0x0c:
      fill.operator()<uint32_t>(tensor.mutable_flat<int32_t>());
      break;
    case 0x0d:
      fill.operator()<uint32_t>(tensor.mutable_flat<float>());
      break;
    default:
      fill.operator()<uint64_t>(tensor.mutable_flat<double>());
      break;
  }
  return tensor;
}

absl::Status LengthError(const InputFile& file, const IdxHeader& header,
                         absl::string_view found) {
  const double bytes = static_cast<double>(header.type.shape.element_count()) *
                       static_cast<double>(header.value_bytes);
  return FileError(
      file, absl::StrCat("its header declares ", header.type.shape.ToString(),
                         ", which is ", bytes, " bytes of values; ", found));
}

// How the values of a file are converted.
struct RecordForm {
  TensorType record;
  double scale = 0;
};

absl::StatusOr<TensorTable::Component> ReadComponent(const std::string& path,
                                                     const RecordForm& form) {
  ASSIGN_OR_RETURN(Tensor values, ReadIdx(path));
  Shape shape = values.shape();
  shape.RemoveDim(0);
  if (shape != form.record.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": records are ", shape.ToString(), "; expected ",
                     form.record.shape.ToString()));
  }
  return MakeComponent(std::move(values), form.record.dtype, form.scale);
}

absl::Status CheckPair(const std::string& path, int64_t record_count,
                       const std::string& label_path, int64_t label_count) {
  if (record_count == label_count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has ", record_count, " records and ", label_path,
                   " has ", label_count, "; expected a label for each image"));
}

// The arguments of an IdxNode.
struct IdxNodeArguments {
  std::vector<std::string> paths;
  std::vector<std::string> label_paths;  // None, or one for each path.
  std::vector<int64_t> record_counts;    // Empty: not known.
  RecordForm records;
  RecordForm labels;
  InterleaveOptions order;

  std::vector<TensorType> types() const {
    if (label_paths.empty()) return {records.record};
    return {records.record, labels.record};
  }
  int64_t cardinality() const {
    if (record_counts.empty()) return Dataset::kUnknownCardinality;
    return std::accumulate(record_counts.begin(), record_counts.end(),
                           int64_t{0});
  }
};

class IdxNode final : public FileTableNode {
 public:
  explicit IdxNode(IdxNodeArguments files)
      : FileTableNode(files.types(), files.cardinality(), files.paths,
                      files.order),
        files_(std::move(files)) {}

  absl::StatusOr<NodePointer> WithFiles(
      absl::Span<const int> files) const override {
    IdxNodeArguments chosen = {.records = files_.records,
                               .labels = files_.labels,
                               .order = files_.order};
    for (const int file : files) {
      chosen.paths.push_back(files_.paths[file]);
      if (!files_.label_paths.empty()) {
        chosen.label_paths.push_back(files_.label_paths[file]);
      }
      if (!files_.record_counts.empty()) {
        chosen.record_counts.push_back(files_.record_counts[file]);
      }
    }
    return std::make_shared<IdxNode>(std::move(chosen));
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    proto::DatasetStage::Idx* const idx = encoded->add_stages()->mutable_idx();
    *idx->mutable_path() = {files_.paths.begin(), files_.paths.end()};
    idx->set_scale(files_.records.scale);
    idx->set_dtype(EncodeDType(files_.records.record.dtype));
    *idx->mutable_record_shape() = EncodeShape(files_.records.record.shape);
    if (!files_.label_paths.empty()) {
      *idx->mutable_label_path() = {files_.label_paths.begin(),
                                    files_.label_paths.end()};
      *idx->mutable_label_shape() = EncodeShape(files_.labels.record.shape);
    }
    idx->mutable_order()->set_cycle_length(files_.order.cycle_length);
    idx->mutable_order()->set_block_length(files_.order.block_length);
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<Components> ReadFile(int file) const override {
    Components components;
    ASSIGN_OR_RETURN(components.emplace_back(),
                     ReadComponent(files_.paths[file], files_.records));
    if (files_.label_paths.empty()) return components;
    ASSIGN_OR_RETURN(components.emplace_back(),
                     ReadComponent(files_.label_paths[file], files_.labels));
    RETURN_IF_ERROR(CheckPair(
        files_.paths[file], components[0].values.shape().dim(0),
        files_.label_paths[file], components[1].values.shape().dim(0)));
    return components;
  }

 private:
  const IdxNodeArguments files_;
};

// Takes from the headers what `options` do not specify.
absl::Status ReadHeaders(const IdxOptions& options, IdxNodeArguments* files) {
  for (size_t i = 0; i < files->paths.size(); ++i) {
    ASSIGN_OR_RETURN(TensorType type, ReadIdxType(files->paths[i]));
    files->record_counts.push_back(type.shape.dim(0));
    type.shape.RemoveDim(0);
    TensorType& record = files->records.record;
    if (record.dtype == DType::kInvalid) record.dtype = type.dtype;
    if (i == 0) record.shape = type.shape;
    if (i >= files->label_paths.size()) continue;
    ASSIGN_OR_RETURN(type, ReadIdxType(files->label_paths[i]));
    RETURN_IF_ERROR(CheckPair(files->paths[i], files->record_counts[i],
                              files->label_paths[i], type.shape.dim(0)));
    type.shape.RemoveDim(0);
    if (i == 0 && !options.label_shape.has_value()) {
      files->labels.record.shape = type.shape;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRecord(const IdxNodeArguments& files) {
  const TensorType& record = files.records.record;
  const double scale = files.records.scale;
  for (const Shape& shape : {record.shape, files.labels.record.shape}) {
    if (shape.IsFullyKnown() && shape.rank() < Shape::kRankMax) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(files.paths[0], ": record_shape is ", shape.ToString(),
                     "; expected known extents"));
  }
  if (record.dtype == DType::kString || record.dtype == DType::kBool ||
      (scale != 0 && !IsFloating(record.dtype))) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.paths[0], ": dtype is ", DTypeName(record.dtype),
                     scale != 0 ? "; scaling needs a floating dtype"
                                : "; expected a number"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorType> ReadIdxType(absl::string_view path) {
  ASSIGN_OR_RETURN(const auto file, InputFile::Open(path));
  ASSIGN_OR_RETURN(const IdxHeader header, ReadIdxHeader(file.get()));
  return header.type;
}

absl::StatusOr<Tensor> ReadIdx(absl::string_view path) {
  ASSIGN_OR_RETURN(const auto file, InputFile::Open(path));
  ASSIGN_OR_RETURN(const IdxHeader header, ReadIdxHeader(file.get()));
  // A header may declare more than the file contains.
  const int64_t count = header.type.shape.element_count();
  if (count >
      file->content_bytes_max() / static_cast<int64_t>(header.value_bytes)) {
    return LengthError(
        *file, header,
        absl::StrCat("the file holds at most ", file->content_bytes_max()));
  }
  const size_t expected_bytes = static_cast<size_t>(count) * header.value_bytes;
  Tensor values;
  std::vector<uint8_t> bytes;
  uint8_t* target;
  if (header.type_code == 0x08) {
    values = Tensor(DType::kUint8, header.type.shape);
    target = values.mutable_raw_data();
  } else {
    bytes.resize(expected_bytes);
    target = bytes.data();
  }
  ASSIGN_OR_RETURN(const size_t found_bytes,
                   file->Read(target, expected_bytes));
  if (found_bytes < expected_bytes) {
    return LengthError(*file, header, absl::StrCat("found ", found_bytes));
  }
  uint8_t surplus;
  ASSIGN_OR_RETURN(const size_t surplus_bytes, file->Read(&surplus, 1));
  if (surplus_bytes > 0) {
    return LengthError(*file, header, "the file continues after them");
  }
  return header.type_code == 0x08 ? values : DecodeValues(header, bytes);
}

absl::StatusOr<NodePointer> MakeIdx(std::vector<std::string> paths,
                                    std::vector<std::string> label_paths,
                                    const IdxOptions& options) {
  RETURN_IF_ERROR(CheckFiles("Idx", paths, options.order));
  if (!label_paths.empty() && label_paths.size() != paths.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Idx: ", paths.size(), " files of images, the first ", paths[0],
        ", and ", label_paths.size(), " of labels, the first ", label_paths[0],
        "; expected one of labels for each"));
  }
  if (!std::isfinite(options.scale)) {
    return absl::InvalidArgumentError(absl::StrCat(
        paths[0], ": scale is ", options.scale, "; expected a finite number"));
  }
  IdxNodeArguments files = {.paths = std::move(paths),
                            .label_paths = std::move(label_paths),
                            .order = options.order};
  files.records = {.record = {.dtype = options.dtype}, .scale = options.scale};
  files.labels.record.dtype = DType::kInt64;
  if (options.label_shape.has_value()) {
    files.labels.record.shape = *options.label_shape;
  }
  TensorType& record = files.records.record;
  if (record.dtype == DType::kInvalid && options.scale != 0) {
    record.dtype = DType::kFloat32;
  }
  if (record.dtype == DType::kInvalid || !options.record_shape.has_value()) {
    RETURN_IF_ERROR(ReadHeaders(options, &files));
  }
  if (options.record_shape.has_value()) record.shape = *options.record_shape;
  RETURN_IF_ERROR(CheckRecord(files));
  return std::make_shared<IdxNode>(std::move(files));
}

}  // namespace muster
