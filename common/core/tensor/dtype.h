#ifndef COMMON_CORE_TENSOR_DTYPE_H_
#define COMMON_CORE_TENSOR_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/base/check.h"
#include "common/core/tensor/float16.h"

namespace muster {

// The type of a tensor's elements. The numbers are TensorFlow's (types.proto),
// in messages and in checkpoints.
enum class DType : uint8_t {
  kInvalid = 0,
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kUint8 = 4,
  kString = 7,  // Records and file names; elements are std::string.
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kFloat16 = 19,
};

// Returns the bytes of one element: sizeof(std::string) for kString, 0 for
// kInvalid.
size_t SizeOf(DType dtype);

// Returns "float32", "bfloat16", ..., as NumPy and Keras name them.
absl::string_view DTypeName(DType dtype);
std::ostream& operator<<(std::ostream& out, DType dtype);
inline std::string DTypeString(DType dtype) {
  return std::string(DTypeName(dtype));
}

//   kInvalidArgument  `name` is not a dtype; the message lists all dtypes
absl::StatusOr<DType> ParseDType(absl::string_view name);

// True if `number` is a DType other than kInvalid.
bool IsKnownDType(int number);

bool IsFloating(DType dtype);  // The four floating types.
bool IsInteger(DType dtype);   // int32, int64, uint8; not bool.

// DTypeOf<float>() == DType::kFloat32, and so on.
template <typename T>
constexpr DType DTypeOf();
template <>
constexpr DType DTypeOf<float>() {
  return DType::kFloat32;
}
template <>
constexpr DType DTypeOf<double>() {
  return DType::kFloat64;
}
template <>
constexpr DType DTypeOf<int32_t>() {
  return DType::kInt32;
}
template <>
constexpr DType DTypeOf<int64_t>() {
  return DType::kInt64;
}
template <>
constexpr DType DTypeOf<uint8_t>() {
  return DType::kUint8;
}
template <>
constexpr DType DTypeOf<bool>() {
  return DType::kBool;
}
template <>
constexpr DType DTypeOf<bfloat16>() {
  return DType::kBfloat16;
}
template <>
constexpr DType DTypeOf<float16>() {
  return DType::kFloat16;
}
template <>
constexpr DType DTypeOf<std::string>() {
  return DType::kString;
}

// Calls visitor.operator()<T>() with the C++ type of `dtype`, which must be
// numeric or bool:
//   VisitNumber(dtype, [&]<typename T>() { ... });
template <typename Visitor>
decltype(auto) VisitNumber(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::kFloat32:
      return visitor.template operator()<float>();
    case DType::kFloat64:
      return visitor.template operator()<double>();
    case DType::kInt32:
      return visitor.template operator()<int32_t>();
    case DType::kInt64:
      return visitor.template operator()<int64_t>();
    case DType::kUint8:
      return visitor.template operator()<uint8_t>();
    case DType::kBool:
      return visitor.template operator()<bool>();
    case DType::kBfloat16:
      return visitor.template operator()<bfloat16>();
    case DType::kFloat16:
      return visitor.template operator()<float16>();
    case DType::kString:
    case DType::kInvalid:
      break;
  }
  MUSTER_CHECK(false && "dtype is not a number");
  std::abort();
}

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_DTYPE_H_
