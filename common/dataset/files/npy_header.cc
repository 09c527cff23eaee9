#include "common/dataset/files/npy_header.h"

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

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

}  // namespace muster
