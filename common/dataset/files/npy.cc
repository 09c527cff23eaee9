#include "common/dataset/files/npy.h"

#include <algorithm>
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
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/float16.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/dataset/files/file_table.h"
#include "common/dataset/files/input_file.h"
#include "common/dataset/row_tables.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

constexpr size_t kBytesPerLetter = 4;
// Of one string: bytes or letters.
constexpr int kStringExtentMax = 64 << 20;

// Parses the few forms of Python that NumPy writes: strings, True and False,
// and tuples of integers.
class DictReader {
 public:
  explicit DictReader(absl::string_view text) : text_(text) {}

  // Consumes `token` if it comes next.
  bool Take(absl::string_view token) {
    text_ = absl::StripLeadingAsciiWhitespace(text_);
    if (text_.substr(0, token.size()) != token) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  absl::StatusOr<std::string> String() {
    const char quote = Take("'") ? '\'' : Take("\"") ? '"' : 0;
    const size_t end = quote == 0 ? text_.npos : text_.find(quote);
    if (end == text_.npos) return Unexpected("a string");
    const std::string value(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return value;
  }

  absl::StatusOr<bool> Bool() {
    if (Take("True")) return true;
    if (Take("False")) return false;
    return Unexpected("True or False");
  }

  absl::StatusOr<std::vector<int64_t>> Tuple() {
    if (!Take("(")) return Unexpected("a tuple");
    std::vector<int64_t> values;
    while (!Take(")")) {
      text_ = absl::StripLeadingAsciiWhitespace(text_);
      size_t digits = 0;
      while (digits < text_.size() && absl::ascii_isdigit(text_[digits])) {
        ++digits;
      }
      int64_t value;
      if (!absl::SimpleAtoi(text_.substr(0, digits), &value)) {
        return Unexpected("a number");
      }
      values.push_back(value);
      text_.remove_prefix(digits);
      Take("L");  // As Python 2 wrote it.
      if (!Take(",")) {
        if (!Take(")")) return Unexpected("\")\"");
        break;
      }
    }
    return values;
  }

  absl::Status Unexpected(absl::string_view expected) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "its header has \"", text_.substr(0, 16), "\"; expected ", expected));
  }

 private:
  absl::string_view text_;  // The unread part.
};

absl::Status ParseDescription(const std::string& description,
                              NpyHeader* header) {
  const bool has_order =
      !description.empty() &&
      std::string("<>|=").find(description[0]) != std::string::npos;
  const std::string type = description.substr(has_order ? 1 : 0);
  int size_bytes = 0;
  if (type.size() >= 2 && absl::SimpleAtoi(type.substr(1), &size_bytes)) {
    header->kind = type[0];
    header->value_bytes = static_cast<size_t>(size_bytes);
    header->is_big_endian = has_order && description[0] == '>';
    switch (header->kind) {
      case 'f':
        header->dtype = size_bytes == 2   ? DType::kFloat16
                        : size_bytes == 4 ? DType::kFloat32
                        : size_bytes == 8 ? DType::kFloat64
                                          : DType::kInvalid;
        break;
      case 'i':
        header->dtype = size_bytes == 8 ? DType::kInt64
                        : size_bytes == 1 || size_bytes == 2 || size_bytes == 4
                            ? DType::kInt32
                            : DType::kInvalid;
        break;
      case 'u':
        header->dtype = size_bytes == 1   ? DType::kUint8
                        : size_bytes == 2 ? DType::kInt32
                        : size_bytes == 4 ? DType::kInt64
                                          : DType::kInvalid;
        break;
      case 'b':
        header->dtype = size_bytes == 1 ? DType::kBool : DType::kInvalid;
        break;
      case 'U':
        // The description counts letters, of which each is UTF-32.
        header->value_bytes *= kBytesPerLetter;
        [[fallthrough]];
      case 'S':
        header->dtype = size_bytes > 0 && size_bytes <= kStringExtentMax
                            ? DType::kString
                            : DType::kInvalid;
        break;
      default:
        break;
    }
  }
  if (header->dtype != DType::kInvalid) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "its values are \"", description, "\"",
      type.substr(0, 1) == "O"
          ? ", Python objects, which are not read: that would run their code"
          : "; expected bool, float16 to float64, integers up to int64, or "
            "strings"));
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text) {
  DictReader reader(text);
  NpyHeader header;
  bool has_shape = false;
  bool has_order = false;
  if (!reader.Take("{")) return reader.Unexpected("\"{\"");
  while (!reader.Take("}")) {
    ASSIGN_OR_RETURN(const std::string key, reader.String());
    if (!reader.Take(":")) return reader.Unexpected("\":\"");
    if (key == "descr") {
      ASSIGN_OR_RETURN(const std::string description, reader.String());
      RETURN_IF_ERROR(ParseDescription(description, &header));
    } else if (key == "fortran_order") {
      ASSIGN_OR_RETURN(header.is_column_major, reader.Bool());
      has_order = true;
    } else if (key == "shape") {
      ASSIGN_OR_RETURN(const std::vector<int64_t> dims, reader.Tuple());
      ASSIGN_OR_RETURN(header.shape, Shape::Create(dims, false));
      has_shape = true;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("its header has the key \"", key, "\""));
    }
    if (!reader.Take(",")) {
      if (!reader.Take("}")) return reader.Unexpected("\"}\"");
      break;
    }
  }
  if (header.dtype == DType::kInvalid || !has_shape || !has_order) {
    return absl::InvalidArgumentError(
        "its header lacks descr, fortran_order or shape");
  }
  return header;
}

namespace {

constexpr absl::string_view kNpyMagic = "\x93NUMPY";
constexpr size_t kHeaderBytesMax = size_t{1} << 20;

// NumPy's name of a dtype; empty if it has none.
std::string DescrOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return "<f2";
    case DType::kFloat32:
      return "<f4";
    case DType::kFloat64:
      return "<f8";
    case DType::kInt32:
      return "<i4";
    case DType::kInt64:
      return "<i8";
    case DType::kUint8:
      return "|u1";
    case DType::kBool:
      return "|b1";
    default:
      return "";
  }
}

absl::StatusOr<NpyHeader> ReadNpyHeader(InputFile* file) {
  uint8_t start[12];
  ASSIGN_OR_RETURN(size_t read_count, file->Read(start, 8));
  if (read_count < 8 ||
      std::memcmp(start, kNpyMagic.data(), kNpyMagic.size()) != 0) {
    return FileError(*file,
                     "is not .npy: expected it to begin with \\x93NUMPY");
  }
  const int version = start[6];
  if (version < 1 || version > 3) {
    return FileError(
        *file, absl::StrCat("is .npy version ", version, "; expected 1 to 3"));
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  ASSIGN_OR_RETURN(read_count, file->Read(start + 8, length_bytes));
  size_t length = 0;
  for (size_t i = 0; i < read_count; ++i) {
    length |= size_t{start[8 + i]} << (8 * i);
  }
  if (read_count < length_bytes || length > kHeaderBytesMax) {
    return FileError(
        *file, absl::StrCat("its header has ", length, " bytes; the limit is ",
                            kHeaderBytesMax));
  }
  std::string text(length, '\0');
  ASSIGN_OR_RETURN(read_count, file->Read(text.data(), length));
  if (read_count < length) return FileError(*file, "ends within its header");
  absl::StatusOr<NpyHeader> header = ParseNpyHeader(text);
  if (!header.ok()) return FileError(*file, header.status().message());
  if (header->shape.rank() == 0) {
    return FileError(*file, "holds a single value; expected rows");
  }
  return header;
}

// Converts values of type Stored, in the file's order, to row-major order.
template <typename Stored, typename T>
void FillTensor(const NpyHeader& header, const std::vector<uint8_t>& bytes,
                absl::Span<T> out) {
  const auto load = [&](int64_t index) {
    uint8_t raw[sizeof(Stored)];
    const uint8_t* const place = bytes.data() + index * sizeof(Stored);
    std::copy_n(place, sizeof(Stored), raw);
    if (header.is_big_endian) std::reverse(raw, raw + sizeof(Stored));
    return std::bit_cast<Stored>(raw);
  };
  const Shape& shape = header.shape;
  std::vector<int64_t> position(static_cast<size_t>(shape.rank()), 0);
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t index = static_cast<int64_t>(i);
    if (header.is_column_major) {
      index = 0;
      for (int d = shape.rank() - 1; d >= 0; --d) {
        index = index * shape.dim(d) + position[d];
      }
    }
    if constexpr (std::is_same_v<T, bool>) {
      out[i] = load(index) != 0;
    } else {
      out[i] = static_cast<T>(load(index));
    }
    for (int d = shape.rank() - 1; d >= 0 && ++position[d] == shape.dim(d);
         --d) {
      position[d] = 0;
    }
  }
}

void AppendUtf8(uint32_t letter, std::string* text) {
  constexpr uint32_t kLetterMax = 0x10FFFF;
  constexpr uint32_t kReplacement = 0xFFFD;
  if (letter > kLetterMax) letter = kReplacement;
  const auto append = [text](uint32_t byte) {
    text->push_back(static_cast<char>(byte));
  };
  const auto rest = [&](int shift) {
    append(0x80 | ((letter >> shift) & 0x3F));
  };
  if (letter < 0x80) return append(letter);
  if (letter < 0x800) {
    append(0xC0 | (letter >> 6));
  } else if (letter < 0x10000) {
    append(0xE0 | (letter >> 12));
    rest(6);
  } else {
    append(0xF0 | (letter >> 18));
    rest(12);
    rest(6);
  }
  rest(0);
}

// Strings are filled up with zeros, which do not belong to them. Texts of
// letters become UTF-8, as in TensorFlow.
void FillStrings(const NpyHeader& header, const std::vector<uint8_t>& bytes,
                 absl::Span<std::string> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t begin = i * header.value_bytes;
    const absl::Span<const uint8_t> value =
        absl::MakeConstSpan(bytes).subspan(begin, header.value_bytes);
    if (header.kind == 'S') {
      out[i].assign(value.begin(), value.end());
    } else {
      for (size_t b = 0; b < value.size(); b += sizeof(uint32_t)) {
        uint32_t letter = 0;
        for (size_t k = 0; k < sizeof(uint32_t); ++k) {
          const size_t place =
              header.is_big_endian ? sizeof(uint32_t) - 1 - k : k;
          letter |= uint32_t{value[b + place]} << (8 * k);
        }
        AppendUtf8(letter, &out[i]);
      }
    }
    out[i].erase(out[i].find_last_not_of('\0') + 1);
  }
}

Tensor DecodeValues(const NpyHeader& header,
                    const std::vector<uint8_t>& bytes) {
  Tensor tensor(header.dtype, header.shape);
  const size_t size = header.value_bytes;
  switch (header.dtype) {
    case DType::kString:
      FillStrings(header, bytes, tensor.mutable_flat<std::string>());
      break;
    case DType::kBool:
      FillTensor<uint8_t>(header, bytes, tensor.mutable_flat<bool>());
      break;
    case DType::kUint8:
      FillTensor<uint8_t>(header, bytes, tensor.mutable_flat<uint8_t>());
      break;
    case DType::kInt32:
      if (size == 1) {
        FillTensor<int8_t>(header, bytes, tensor.mutable_flat<int32_t>());
      } else if (size == 4) {
        FillTensor<int32_t>(header, bytes, tensor.mutable_flat<int32_t>());
      } else if (header.kind == 'u') {
        FillTensor<uint16_t>(header, bytes, tensor.mutable_flat<int32_t>());
      } else {
        FillTensor<int16_t>(header, bytes, tensor.mutable_flat<int32_t>());
      }
      break;
    case DType::kInt64:
      if (size == 4) {
        FillTensor<uint32_t>(header, bytes, tensor.mutable_flat<int64_t>());
      } else {
        FillTensor<int64_t>(header, bytes, tensor.mutable_flat<int64_t>());
      }
      break;
    case DType::kFloat16:
      FillTensor<float16>(header, bytes, tensor.mutable_flat<float16>());
      break;
    case DType::kFloat32:
      FillTensor<float>(header, bytes, tensor.mutable_flat<float>());
      break;
    default:
      FillTensor<double>(header, bytes, tensor.mutable_flat<double>());
      break;
  }
  return tensor;
}

class NpyNode final : public FileTableNode {
 public:
  NpyNode(std::vector<std::string> paths, TensorType record, double scale,
          std::vector<int64_t> row_counts, const InterleaveOptions& order)
      : FileTableNode({record},
                      row_counts.empty()
                          ? Dataset::kUnknownCardinality
                          : std::accumulate(row_counts.begin(),
                                            row_counts.end(), int64_t{0}),
                      std::move(paths), order),
        record_(std::move(record)),
        scale_(scale),
        row_counts_(std::move(row_counts)) {}

  absl::StatusOr<NodePointer> WithFiles(
      absl::Span<const int> files) const override {
    std::vector<std::string> chosen;
    std::vector<int64_t> row_counts;
    for (const int file : files) {
      chosen.push_back(paths()[file]);
      if (!row_counts_.empty()) row_counts.push_back(row_counts_[file]);
    }
    return std::make_shared<NpyNode>(std::move(chosen), record_, scale_,
                                     std::move(row_counts), order());
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    proto::DatasetStage::Npy* const npy = encoded->add_stages()->mutable_npy();
    *npy->mutable_path() = {paths().begin(), paths().end()};
    npy->set_scale(scale_);
    npy->set_dtype(EncodeDType(record_.dtype));
    *npy->mutable_record_shape() = EncodeShape(record_.shape);
    npy->mutable_order()->set_cycle_length(order().cycle_length);
    npy->mutable_order()->set_block_length(order().block_length);
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<Components> ReadFile(int file) const override {
    ASSIGN_OR_RETURN(Tensor values, ReadNpy(paths()[file]));
    const bool has_strings = values.dtype() == DType::kString;
    if (has_strings != (record_.dtype == DType::kString)) {
      return absl::InvalidArgumentError(absl::StrCat(
          paths()[file], ": values are ", DTypeName(values.dtype()),
          "; expected ", DTypeName(record_.dtype)));
    }
    Shape shape = values.shape();
    shape.RemoveDim(0);
    if (shape != record_.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat(paths()[file], ": rows are ", shape.ToString(),
                       "; expected ", record_.shape.ToString()));
    }
    Components components;
    components.push_back(
        MakeComponent(std::move(values), record_.dtype, scale_));
    return components;
  }

 private:
  const TensorType record_;
  const double scale_;
  const std::vector<int64_t> row_counts_;  // Empty: not known.
};

absl::Status CheckRecord(const std::string& path, const TensorType& record,
                         double scale) {
  if (record.dtype != DType::kInvalid && record.shape.IsFullyKnown() &&
      record.shape.rank() < Shape::kRankMax && std::isfinite(scale) &&
      (scale == 0 || IsFloating(record.dtype))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": rows of ", record.ToString(), " and scale ", scale,
                   "; expected known extents, and a floating dtype to scale"));
}

}  // namespace

absl::StatusOr<std::string> NpyFileOf(const Tensor& tensor) {
  const std::string descr = DescrOf(tensor.dtype());
  if (descr.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(".npy files have no ", DTypeName(tensor.dtype()),
                     ": the array is ", tensor.type().ToString()));
  }
  std::string shape;
  for (const int64_t extent : tensor.shape().dims()) {
    absl::StrAppend(&shape, extent, ",");
  }
  std::string header =
      absl::StrCat("{'descr': '", descr,
                   "', 'fortran_order': False, 'shape': (", shape, "), }");
  // Values begin at a multiple of 64 bytes; the header ends with a newline.
  constexpr size_t kAlignment = 64;
  const size_t start_bytes = kNpyMagic.size() + 4;
  const size_t used = (start_bytes + header.size() + 1) % kAlignment;
  header.append((kAlignment - used) % kAlignment, ' ');
  header.push_back('\n');
  std::string bytes(kNpyMagic);
  bytes.push_back(1);
  bytes.push_back(0);
  bytes.push_back(static_cast<char>(header.size() & 0xFF));
  bytes.push_back(static_cast<char>(header.size() >> 8));
  bytes += header;
  if (tensor.size_bytes() > 0) {
    bytes.append(reinterpret_cast<const char*>(tensor.raw_data()),
                 tensor.size_bytes());
  }
  return bytes;
}

absl::StatusOr<TensorType> ReadNpyType(absl::string_view path) {
  ASSIGN_OR_RETURN(const auto file, InputFile::Open(path));
  ASSIGN_OR_RETURN(const NpyHeader header, ReadNpyHeader(file.get()));
  return TensorType{header.dtype, header.shape};
}

absl::StatusOr<Tensor> ReadNpy(absl::string_view path) {
  ASSIGN_OR_RETURN(const auto file, InputFile::Open(path));
  ASSIGN_OR_RETURN(const NpyHeader header, ReadNpyHeader(file.get()));
  const int64_t count = header.shape.element_count();
  const int64_t value_bytes = static_cast<int64_t>(header.value_bytes);
  const std::string promise =
      absl::StrCat("its header declares ", header.shape.ToString(), " of ",
                   value_bytes, " bytes each; ");
  if (header.dtype == DType::kString && header.is_column_major &&
      header.shape.rank() > 1) {
    return FileError(*file,
                     "has strings in column-major order; expected row-major: "
                     "numpy.ascontiguousarray()");
  }
  // A header may declare more than the file contains.
  if (count > file->content_bytes_max() / value_bytes) {
    return FileError(*file, absl::StrCat(promise, "the file holds at most ",
                                         file->content_bytes_max(), " bytes"));
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(count * value_bytes));
  ASSIGN_OR_RETURN(const size_t read_count,
                   file->Read(bytes.data(), bytes.size()));
  if (read_count < bytes.size()) {
    return FileError(*file,
                     absl::StrCat(promise, "found ", read_count, " bytes"));
  }
  uint8_t surplus;
  ASSIGN_OR_RETURN(const size_t surplus_bytes, file->Read(&surplus, 1));
  if (surplus_bytes > 0) {
    return FileError(*file, absl::StrCat(promise, "the file continues"));
  }
  return DecodeValues(header, bytes);
}

absl::StatusOr<NodePointer> MakeNpy(std::vector<std::string> paths,
                                    const NpyOptions& options) {
  RETURN_IF_ERROR(CheckFiles("NpyDataset", paths, options.order));
  TensorType record = {options.dtype, Shape()};
  if (record.dtype == DType::kInvalid && options.scale != 0) {
    record.dtype = DType::kFloat32;
  }
  std::vector<int64_t> row_counts;
  if (record.dtype == DType::kInvalid || !options.record_shape.has_value()) {
    for (size_t i = 0; i < paths.size(); ++i) {
      ASSIGN_OR_RETURN(TensorType type, ReadNpyType(paths[i]));
      row_counts.push_back(type.shape.dim(0));
      type.shape.RemoveDim(0);
      if (i == 0) record.shape = type.shape;
      if (record.dtype == DType::kInvalid) record.dtype = type.dtype;
    }
  }
  if (options.record_shape.has_value()) record.shape = *options.record_shape;
  RETURN_IF_ERROR(CheckRecord(paths[0], record, options.scale));
  return std::make_shared<NpyNode>(std::move(paths), std::move(record),
                                   options.scale, std::move(row_counts),
                                   options.order);
}

}  // namespace muster
