#ifndef COMMON_COMPUTE_OPS_COMPARISON_H_
#define COMMON_COMPUTE_OPS_COMPARISON_H_

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/control.h"

// Comparison, logic and selection with NumPy's broadcasting. Comparisons return
// bool. NaN is not equal to, less than or greater than anything.
namespace muster {

Value Equal(Value a, Value b);  // Bool too.
Value NotEqual(Value a, Value b);
Value Less(Value a, Value b);
Value LessEqual(Value a, Value b);
Value Greater(Value a, Value b);
Value GreaterEqual(Value a, Value b);

Value LogicalAnd(Value a, Value b);
Value LogicalOr(Value a, Value b);
Value LogicalNot(Value x);

// `a` where `condition` (bool) is true, `b` elsewhere. All three broadcast.
Value Select(Value condition, Value a, Value b);

inline Value operator<(Value a, Value b) { return Less(a, b); }
inline Value operator<=(Value a, Value b) { return LessEqual(a, b); }
inline Value operator>(Value a, Value b) { return Greater(a, b); }
inline Value operator>=(Value a, Value b) { return GreaterEqual(a, b); }
inline Value operator<(Value a, double b) { return a < ScalarLike(a, b); }
inline Value operator<=(Value a, double b) { return a <= ScalarLike(a, b); }
inline Value operator>(Value a, double b) { return a > ScalarLike(a, b); }
inline Value operator>=(Value a, double b) { return a >= ScalarLike(a, b); }
inline Value Equal(Value a, double b) { return Equal(a, ScalarLike(a, b)); }
inline Value NotEqual(Value a, double b) {
  return NotEqual(a, ScalarLike(a, b));
}

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_COMPARISON_H_
