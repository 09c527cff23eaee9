#ifndef COMMON_COMPUTE_OPS_CONTROL_H_
#define COMMON_COMPUTE_OPS_CONTROL_H_

#include "common/compute/graph/graph_builder.h"

// Identities, gradient barriers and constants of another value's type. For the
// order of effects see GraphBuilder::RunAfter().
namespace muster {

Value Identity(Value x);

// Returns `x`, but no gradient flows through it.
Value StopGradient(Value x);

// Zeros or ones of the type of `x`. Its elements do not matter.
Value ZerosLike(Value x);
Value OnesLike(Value x);

// Returns a constant scalar of the dtype of `like`. Reports an error if that
// dtype cannot represent `value`, for example 0.5 as int32.
Value ScalarLike(Value like, double value);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_CONTROL_H_
