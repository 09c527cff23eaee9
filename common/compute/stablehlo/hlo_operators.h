#ifndef COMMON_COMPUTE_STABLEHLO_HLO_OPERATORS_H_
#define COMMON_COMPUTE_STABLEHLO_HLO_OPERATORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/stablehlo/hlo_builder.h"
#include "common/core/tensor/shape.h"

// Operations on values of a StableHLO function, each of which adds an
// operation to the function of its operands. Operands of one operator have the
// same element type; their shapes broadcast to each other as in NumPy. A number
// is a constant of the other operand's element type.
namespace muster {

HloValue operator+(const HloValue& a, const HloValue& b);
HloValue operator-(const HloValue& a, const HloValue& b);
HloValue operator*(const HloValue& a, const HloValue& b);
HloValue operator/(const HloValue& a, const HloValue& b);
HloValue operator-(const HloValue& x);

HloValue operator+(const HloValue& a, double b);
HloValue operator-(const HloValue& a, double b);
HloValue operator*(const HloValue& a, double b);
HloValue operator/(const HloValue& a, double b);
HloValue operator+(double a, const HloValue& b);
HloValue operator-(double a, const HloValue& b);
HloValue operator*(double a, const HloValue& b);
HloValue operator/(double a, const HloValue& b);

// A function of one operand that keeps its type: "stablehlo.exponential".
HloValue Unary(absl::string_view op, const HloValue& x);
// A function of two operands of one element type, which it keeps.
HloValue Binary(absl::string_view op, const HloValue& a, const HloValue& b);
// `direction` is "EQ", "NE", "LT", "LE", "GT" or "GE". Returns i1.
HloValue Compare(absl::string_view direction, const HloValue& a,
                 const HloValue& b);
HloValue Compare(absl::string_view direction, const HloValue& a, double b);
// All shapes broadcast to that of the result.
HloValue Select(const HloValue& condition, const HloValue& a,
                const HloValue& b);
HloValue Maximum(const HloValue& a, const HloValue& b);
HloValue Exp(const HloValue& x);
HloValue Log(const HloValue& x);
HloValue Log1p(const HloValue& x);
HloValue Abs(const HloValue& x);
HloValue Tanh(const HloValue& x);

// A constant of the type of `x`, in every element.
HloValue FilledLike(const HloValue& x, double value);
HloValue Convert(const HloValue& x, absl::string_view element);

// ---- Shapes.

HloValue Reshape(const HloValue& x, const Shape& shape);
// Aligns the last axes, as in NumPy.
HloValue BroadcastTo(const HloValue& x, const Shape& shape);
// Axis i of `x` becomes axis axes[i] of the result.
HloValue BroadcastAlong(const HloValue& x, const Shape& shape,
                        absl::Span<const int64_t> axes);
// Axis i of the result is axis permutation[i] of `x`.
HloValue Transpose(const HloValue& x, absl::Span<const int64_t> permutation);
HloValue Slice(const HloValue& x, absl::Span<const int64_t> begin,
               absl::Span<const int64_t> size);
HloValue Concat(absl::Span<const HloValue> parts, int64_t axis);
HloValue Reverse(const HloValue& x, absl::Span<const int64_t> axes);
// `interior` elements are put between neighbours. `low` and `high` may be
// negative, which removes elements.
HloValue Pad(const HloValue& x, const HloValue& value,
             absl::Span<const int64_t> low, absl::Span<const int64_t> high,
             absl::Span<const int64_t> interior = {});

// ---- Reductions. Axes are not negative.

// Removes the axes.
HloValue Reduce(HloReduction reduction, const HloValue& x,
                absl::Span<const int64_t> axes);
// Keeps the axes with extent 1.
HloValue ReduceKeepingAxes(HloReduction reduction, const HloValue& x,
                           absl::Span<const int64_t> axes);
// Reduces over the replicas of the program.
HloValue AllReduce(HloReduction reduction, const HloValue& x,
                   int replica_count);
// Multiplies matrices: contracts axis `axis_a` of `a` with `axis_b` of `b`, for
// each index of their first `batch_rank` axes, which are equal.
HloValue Contract(const HloValue& a, int64_t axis_a, const HloValue& b,
                  int64_t axis_b, int batch_rank);

// ---- Rows. `indices` are i32 or i64 of any rank; they stand in place of axis
// `axis` in the shape of the rows.

// Reads the nearest row for an index that is out of range.
HloValue GatherRows(const HloValue& x, const HloValue& indices, int axis);
// Returns an array of `type` that is 0 but for the sums of the rows with equal
// indices. Drops rows whose index is out of range.
HloValue ScatterRows(const HloType& type, const HloValue& indices,
                     const HloValue& rows, int axis);

// Returns the axes as indices from 0 on; axes of a rank may be negative.
std::vector<int64_t> NormalizedAxes(absl::Span<const int64_t> axes, int rank);

}  // namespace muster

#endif  // COMMON_COMPUTE_STABLEHLO_HLO_OPERATORS_H_
