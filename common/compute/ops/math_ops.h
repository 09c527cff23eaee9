#ifndef COMMON_COMPUTE_OPS_MATH_OPS_H_
#define COMMON_COMPUTE_OPS_MATH_OPS_H_

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/control.h"

// Elementwise powers, exponentials, trigonometry and rounding. Floating dtypes
// only, unless stated otherwise.
namespace muster {

// Broadcasts. Integers too; a negative integer exponent fails the step. The
// gradient of the exponent is 0 where base <= 0.
Value Pow(Value base, Value exponent);
inline Value Pow(Value base, double exponent) {
  return Pow(base, ScalarLike(base, exponent));
}
Value Square(Value x);  // Integers too.
Value Sqrt(Value x);
Value Rsqrt(Value x);       // 1 / sqrt(x)
Value Reciprocal(Value x);  // 1 / x

Value Exp(Value x);
Value Expm1(Value x);  // exp(x) - 1, accurate near 0.
Value Log(Value x);
Value Log1p(Value x);  // log(1 + x), accurate near 0.

Value Sin(Value x);
Value Cos(Value x);
Value Erf(Value x);

// No gradient flows through these.
Value Floor(Value x);
Value Ceil(Value x);
Value Round(Value x);     // Rounds halves to even.
Value IsNan(Value x);     // bool
Value IsFinite(Value x);  // bool

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_MATH_OPS_H_
