#ifndef COMMON_COMPUTE_OPS_CONTROL_H_
#define COMMON_COMPUTE_OPS_CONTROL_H_

#include "common/compute/graph/graph_builder.h"

// Values that pass through, stop a gradient, or take another's type. Order of
// effects is GraphBuilder::RunAfter's business.
namespace muster {

Value Identity(Value x);

// `x`, through which no gradient flows back.
Value StopGradient(Value x);

// Zeros or ones of the type of `x`; only the type of `x` matters.
Value ZerosLike(Value x);
Value OnesLike(Value x);

// A constant scalar of the dtype of `like`. Reported as a mistake when that
// dtype cannot hold `value`, as an int32 cannot hold 0.5.
Value ScalarLike(Value like, double value);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_CONTROL_H_
