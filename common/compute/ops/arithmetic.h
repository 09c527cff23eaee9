#ifndef COMMON_COMPUTE_OPS_ARITHMETIC_H_
#define COMMON_COMPUTE_OPS_ARITHMETIC_H_

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/control.h"

// Arithmetic with NumPy's broadcasting. Both operands have the same dtype. A
// C++ number takes the dtype of the other operand:
//   Value y = 2.0 * x + b;
namespace muster {

Value Add(Value a, Value b);
Value Sub(Value a, Value b);
Value Mul(Value a, Value b);
// Integers are rounded towards zero. Dividing an integer by zero fails the
// step.
Value Div(Value a, Value b);
// Rounds towards minus infinity, as Python's //.
Value FloorDiv(Value a, Value b);
// a - FloorDiv(a, b) * b, as Python's %.
Value Mod(Value a, Value b);
// NaN if either operand is NaN. The gradient of equal operands goes to `a`.
Value Maximum(Value a, Value b);
Value Minimum(Value a, Value b);
// (a - b)^2
Value SquaredDifference(Value a, Value b);

Value Neg(Value x);
// The gradient at 0 is 0.
Value Abs(Value x);
// -1, 0 or 1.
Value Sign(Value x);

inline Value operator+(Value a, Value b) { return Add(a, b); }
inline Value operator-(Value a, Value b) { return Sub(a, b); }
inline Value operator*(Value a, Value b) { return Mul(a, b); }
inline Value operator/(Value a, Value b) { return Div(a, b); }
inline Value operator-(Value x) { return Neg(x); }

inline Value operator+(Value a, double b) { return a + ScalarLike(a, b); }
inline Value operator-(Value a, double b) { return a - ScalarLike(a, b); }
inline Value operator*(Value a, double b) { return a * ScalarLike(a, b); }
inline Value operator/(Value a, double b) { return a / ScalarLike(a, b); }
inline Value operator+(double a, Value b) { return ScalarLike(b, a) + b; }
inline Value operator-(double a, Value b) { return ScalarLike(b, a) - b; }
inline Value operator*(double a, Value b) { return ScalarLike(b, a) * b; }
inline Value operator/(double a, Value b) { return ScalarLike(b, a) / b; }

inline Value Maximum(Value a, double b) { return Maximum(a, ScalarLike(a, b)); }
inline Value Minimum(Value a, double b) { return Minimum(a, ScalarLike(a, b)); }

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_ARITHMETIC_H_
