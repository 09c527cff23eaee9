#ifndef COMMON_COMPUTE_OPS_TYPE_RULES_H_
#define COMMON_COMPUTE_OPS_TYPE_RULES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/op_registry.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

// Helpers for type rules. Inputs and attributes are not trusted: no function
// here aborts, overflows or allocates memory in proportion to them. All errors
// are kInvalidArgument.
namespace muster::internal {

using TypesOr = absl::StatusOr<std::vector<TensorType>>;

// The maximum number of outputs of an op.
inline constexpr int64_t kOutputCountMax = 1 << 16;

enum class DTypeClass {
  kNumberOrBool,
  kNumber,    // Not bool.
  kFloating,  // The four floating dtypes.
  kIndex,     // int32 or int64.
  kBool,
  kAny,  // Also string: for ops that pass elements on.
};

// Returns one output type. Rejects invalid shapes.
TypesOr OneOutput(DType dtype, const Shape& shape);

// Checks that inputs [begin, end) have dtypes of one class.
absl::Status ExpectClass(const TypeRuleArguments& arguments, DTypeClass wanted,
                         int begin, int end);
// As ExpectClass(), and checks that all of them have the same dtype.
absl::Status ExpectSameClass(const TypeRuleArguments& arguments,
                             DTypeClass wanted, int begin, int end);
absl::Status ExpectRank(const TypeRuleArguments& arguments, int input,
                        int rank_min, int rank_max = Shape::kRankMax);
// Checks that all inputs have the same floating dtype and rank 4, as images and
// their kernels do.
absl::Status ExpectFloatingImages(const TypeRuleArguments& arguments);

// Merges the known parts of two extents or shapes that must be equal.
absl::StatusOr<int64_t> MergeExtents(int64_t a, int64_t b);
absl::StatusOr<Shape> MergeShapes(const Shape& a, const Shape& b);

// a + b if both are known, else kUnknown.
absl::StatusOr<int64_t> AddExtents(int64_t a, int64_t b);

// Returns the broadcast shape of all inputs.
absl::StatusOr<Shape> BroadcastInputs(absl::Span<const TensorType> inputs);

// Returns the integer attribute `name` as an axis of `rank` dimensions.
absl::StatusOr<int> AxisAttribute(const TypeRuleArguments& arguments,
                                  absl::string_view name, int rank);
// Returns the list attribute `name` as distinct axes in ascending order.
absl::StatusOr<std::vector<int>> AxesAttribute(
    const TypeRuleArguments& arguments, absl::string_view name, int rank);

// Returns the attribute, or `fallback` if it is absent. An error if it has
// another type.
template <typename T>
absl::StatusOr<T> OptionalAttribute(const Attributes& attributes,
                                    absl::string_view name, T fallback) {
  if (!attributes.Has(name)) return fallback;
  return attributes.Get<T>(name);
}

// Complete rules that several ops share.
TypesOr BroadcastNumberRule(const TypeRuleArguments& arguments);
TypesOr SameNumberRule(const TypeRuleArguments& arguments);
TypesOr SameFloatingRule(const TypeRuleArguments& arguments);
TypesOr SameNumberOrBoolRule(const TypeRuleArguments& arguments);
TypesOr SameTypeRule(const TypeRuleArguments& arguments);
// All inputs and the output have the same floating type.
TypesOr MergedFloatingRule(const TypeRuleArguments& arguments);

template <typename... Pieces>
absl::Status TypeError(const Pieces&... pieces) {
  return absl::InvalidArgumentError(absl::StrCat(pieces...));
}

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_OPS_TYPE_RULES_H_
