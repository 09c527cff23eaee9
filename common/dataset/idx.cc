#include "common/dataset/idx.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/dataset/input_file.h"
#include "common/dataset/loaded_table.h"
#include "common/dataset/row_tables.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor_codec.h"

namespace muster {
namespace {

struct Header {
  uint8_t type_code = 0;
  size_t value_bytes = 0;  // Of one value in the file.
  TensorType type;         // As ReadIdx() returns it.
};

absl::Status FileError(const InputFile& file, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(file.path(), ": ", message));
}

uint32_t BigEndian32(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 |
         uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

bool ResolveType(uint8_t code, Header* header) {
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

absl::StatusOr<Header> ReadHeader(InputFile* file) {
  std::array<uint8_t, 4> magic;
  ASSIGN_OR_RETURN(const size_t magic_bytes,
                   file->Read(magic.data(), magic.size()));
  Header header;
  if (magic_bytes < magic.size() || magic[0] != 0 || magic[1] != 0 ||
      !ResolveType(magic[2], &header)) {
    return FileError(
        *file, absl::StrFormat("is not IDX: expected it to begin with 00 00, a "
                               "type (08, 09, 0b, 0c, 0d or 0e) and a rank; "
                               "found %02x %02x %02x %02x (%d bytes)",
                               magic[0], magic[1], magic[2], magic[3],
                               magic_bytes));
  }
  const int rank = magic[3];
  if (rank < 1 || rank > Shape::kRankMax) {
    return FileError(*file, absl::StrCat("has ", rank,
                                         " dimensions; expected 1 to ",
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

// From the bytes of the file to values of this machine.
Tensor DecodeValues(const Header& header, const std::vector<uint8_t>& bytes) {
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

absl::Status LengthError(const InputFile& file, const Header& header,
                         absl::string_view found) {
  const double bytes = static_cast<double>(header.type.shape.element_count()) *
                       static_cast<double>(header.value_bytes);
  return FileError(
      file, absl::StrCat("its header says ", header.type.shape.ToString(),
                         ", which is ", bytes, " bytes of values; ", found));
}

// Converts to `dtype` and multiplies by `scale` unless it is 0.
Tensor Convert(const Tensor& values, DType dtype, double scale) {
  Tensor converted(dtype, values.shape());
  const double factor = scale == 0 ? 1 : scale;
  VisitNumber(dtype, [&]<typename T>() {
    const auto out = converted.mutable_flat<T>();
    for (size_t i = 0; i < out.size(); ++i) {
      const double value =
          values.ElementAsDouble(static_cast<int64_t>(i)) * factor;
      if constexpr (std::is_arithmetic_v<T>) {
        out[i] = static_cast<T>(value);
      } else {
        out[i] = T(static_cast<float>(value));
      }
    }
  });
  return converted;
}

class IdxNode final : public TableNode {
 public:
  IdxNode(std::string path, TensorType record, int64_t record_count,
          double scale)
      : TableNode({record}, record_count),
        path_(std::move(path)),
        record_(std::move(record)),
        scale_(scale) {}

  absl::Status Encode(proto::Dataset* encoded) const override {
    proto::DatasetStage::Idx* const idx = encoded->add_stages()->mutable_idx();
    idx->set_path(path_);
    idx->set_scale(scale_);
    idx->set_dtype(EncodeDType(record_.dtype));
    *idx->mutable_record_shape() = EncodeShape(record_.shape);
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<std::shared_ptr<const RowTable>> Table() const override {
    return table_.Get([this] { return Load(); });
  }

 private:
  absl::StatusOr<std::shared_ptr<const RowTable>> Load() const {
    ASSIGN_OR_RETURN(Tensor values, ReadIdx(path_));
    Shape shape = values.shape();
    shape.RemoveDim(0);
    if (shape != record_.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": records are ", shape.ToString(),
                       "; expected ", record_.shape.ToString()));
    }
    TensorTable::Component component;
    if (values.dtype() == DType::kUint8 && record_.dtype == DType::kFloat32) {
      component.scale = scale_ == 0 ? 1.0f : static_cast<float>(scale_);
      component.values = std::move(values);
    } else if (values.dtype() == record_.dtype && scale_ == 0) {
      component.values = std::move(values);
    } else {
      component.values = Convert(values, record_.dtype, scale_);
    }
    return std::make_shared<TensorTable>(
        std::vector<TensorTable::Component>{std::move(component)});
  }

  const std::string path_;
  const TensorType record_;
  const double scale_;
  mutable LoadedTable table_;
};

}  // namespace

absl::StatusOr<TensorType> ReadIdxType(absl::string_view path) {
  ASSIGN_OR_RETURN(const auto file, InputFile::Open(path));
  ASSIGN_OR_RETURN(const Header header, ReadHeader(file.get()));
  return header.type;
}

absl::StatusOr<Tensor> ReadIdx(absl::string_view path) {
  ASSIGN_OR_RETURN(const auto file, InputFile::Open(path));
  ASSIGN_OR_RETURN(const Header header, ReadHeader(file.get()));
  // A header may promise what the file cannot hold.
  const int64_t count = header.type.shape.element_count();
  if (count > file->content_bytes_max() /
                  static_cast<int64_t>(header.value_bytes)) {
    return LengthError(*file, header,
                       absl::StrCat("the file holds at most ",
                                    file->content_bytes_max()));
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
    return LengthError(*file, header, "the file goes on after them");
  }
  return header.type_code == 0x08 ? values : DecodeValues(header, bytes);
}

absl::StatusOr<NodePointer> MakeIdx(absl::string_view path,
                                    const IdxOptions& options) {
  const std::string name(path);
  if (!std::isfinite(options.scale)) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": scale is ", options.scale, "; expected a finite number"));
  }
  TensorType record;
  record.dtype = options.dtype;
  if (record.dtype == DType::kInvalid && options.scale != 0) {
    record.dtype = DType::kFloat32;
  }
  int64_t record_count = Dataset::kUnknownCardinality;
  if (record.dtype == DType::kInvalid || !options.record_shape.has_value()) {
    ASSIGN_OR_RETURN(const TensorType file_type, ReadIdxType(path));
    if (record.dtype == DType::kInvalid) record.dtype = file_type.dtype;
    record_count = file_type.shape.dim(0);
    record.shape = file_type.shape;
    record.shape.RemoveDim(0);
  }
  if (options.record_shape.has_value()) record.shape = *options.record_shape;
  if (!record.shape.IsFullyKnown() || record.shape.rank() >= Shape::kRankMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": record_shape is ", record.shape.ToString(),
                     "; expected known extents"));
  }
  if (record.dtype == DType::kString || record.dtype == DType::kBool ||
      (options.scale != 0 && !IsFloating(record.dtype))) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": dtype is ", DTypeName(record.dtype),
                     options.scale != 0 ? "; scaling needs a floating dtype"
                                        : "; expected a number"));
  }
  return std::make_shared<IdxNode>(name, std::move(record), record_count,
                                   options.scale);
}

}  // namespace muster
