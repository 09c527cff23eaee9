#include "common/core/tensor/dtype.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

struct DTypeRow {
  DType dtype;
  absl::string_view name;
  size_t size;
};

constexpr DTypeRow kRows[] = {
    {DType::kFloat32, "float32", 4},
    {DType::kFloat64, "float64", 8},
    {DType::kInt32, "int32", 4},
    {DType::kUint8, "uint8", 1},
    {DType::kInt64, "int64", 8},
    {DType::kBool, "bool", 1},
    {DType::kBfloat16, "bfloat16", 2},
    {DType::kFloat16, "float16", 2},
    {DType::kString, "string", sizeof(std::string)},
};

const DTypeRow* Find(int number) {
  for (const DTypeRow& row : kRows) {
    if (static_cast<int>(row.dtype) == number) return &row;
  }
  return nullptr;
}

}  // namespace

size_t SizeOf(DType dtype) {
  const DTypeRow* row = Find(static_cast<int>(dtype));
  return row == nullptr ? 0 : row->size;
}

absl::string_view DTypeName(DType dtype) {
  const DTypeRow* row = Find(static_cast<int>(dtype));
  return row == nullptr ? "invalid" : row->name;
}

std::ostream& operator<<(std::ostream& out, DType dtype) {
  return out << DTypeName(dtype);
}

absl::StatusOr<DType> ParseDType(absl::string_view name) {
  std::string known;
  for (const DTypeRow& row : kRows) {
    if (row.name == name) return row.dtype;
    absl::StrAppend(&known, known.empty() ? "" : ", ", row.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is not a dtype; expected one of ", known));
}

bool IsKnownDType(int number) { return Find(number) != nullptr; }

bool IsFloating(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 ||
         dtype == DType::kBfloat16 || dtype == DType::kFloat16;
}

bool IsInteger(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64 ||
         dtype == DType::kUint8;
}

}  // namespace muster
