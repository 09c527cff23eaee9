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

// What the type rules of all families are made of. Inputs and attributes may
// come from anywhere: nothing here aborts, overflows or takes memory by them.
// All errors are kInvalidArgument.
namespace muster::internal {

using TypesOr = absl::StatusOr<std::vector<TensorType>>;

// No op has more outputs than this, whatever its attributes say.
inline constexpr int64_t kOutputCountMax = 1 << 16;

enum class DTypeClass {
  kNumberOrBool,
  kNumber,    // Not bool.
  kFloating,  // The four floating types.
  kIndex,     // int32 or int64.
  kBool,
};

// One output. Refuses shapes that no tensor can have.
TypesOr OneOutput(DType dtype, const Shape& shape);

// Inputs [begin, end) have dtypes of one class ...
absl::Status ExpectClass(const TypeRuleArguments& arguments, DTypeClass wanted,
                         int begin, int end);
// ... and all the same one.
absl::Status ExpectSameClass(const TypeRuleArguments& arguments,
                             DTypeClass wanted, int begin, int end);
absl::Status ExpectRank(const TypeRuleArguments& arguments, int input,
                        int rank_min, int rank_max = Shape::kRankMax);

// What is known of two extents, or shapes, that must be the same.
absl::StatusOr<int64_t> MergeExtents(int64_t a, int64_t b);
absl::StatusOr<Shape> MergeShapes(const Shape& a, const Shape& b);

// a + b when both are known, kUnknown when one is not.
absl::StatusOr<int64_t> AddExtents(int64_t a, int64_t b);

// Broadcasting of all inputs.
absl::StatusOr<Shape> BroadcastInputs(absl::Span<const TensorType> inputs);

// The integer attribute `name` as an axis of `rank` dimensions.
absl::StatusOr<int> AxisAttribute(const TypeRuleArguments& arguments,
                                  absl::string_view name, int rank);
// The list attribute `name` as distinct axes, ascending.
absl::StatusOr<std::vector<int>> AxesAttribute(
    const TypeRuleArguments& arguments, absl::string_view name, int rank);

// The attribute, or `fallback` when it is absent; an error when it is of
// another kind.
template <typename T>
absl::StatusOr<T> OptionalAttribute(const Attributes& attributes,
                                    absl::string_view name, T fallback) {
  if (!attributes.Has(name)) return fallback;
  return attributes.Get<T>(name);
}

// Whole rules that many ops share.
TypesOr BroadcastNumberRule(const TypeRuleArguments& arguments);
TypesOr SameNumberRule(const TypeRuleArguments& arguments);
TypesOr SameFloatingRule(const TypeRuleArguments& arguments);
TypesOr SameNumberOrBoolRule(const TypeRuleArguments& arguments);
// All inputs have one floating type, and so has the output.
TypesOr MergedFloatingRule(const TypeRuleArguments& arguments);

template <typename... Pieces>
absl::Status TypeError(const Pieces&... pieces) {
  return absl::InvalidArgumentError(absl::StrCat(pieces...));
}

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_OPS_TYPE_RULES_H_
