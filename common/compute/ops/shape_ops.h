#ifndef COMMON_COMPUTE_OPS_SHAPE_OPS_H_
#define COMMON_COMPUTE_OPS_SHAPE_OPS_H_

#include <cstdint>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/dtype.h"

// The same elements under another type or shape. Axes may be negative and then
// count from the back.
namespace muster {

// Converts as TensorFlow does: floats to integers towards zero, numbers to bool
// by x != 0. A float that its integer type cannot hold becomes the nearest one,
// a NaN becomes 0.
Value Cast(Value x, DType dtype);

// One extent of `shape` may be -1: it follows from the others.
Value Reshape(Value x, std::vector<int64_t> shape);
// To the shape of `like`, known only when the graph runs.
Value ReshapeLike(Value x, Value like);

Value ExpandDims(Value x, int64_t axis);
// Drops axes of extent 1: those named, or all whose extent is known to be 1.
Value Squeeze(Value x, std::vector<int64_t> axes);
Value Squeeze(Value x);

// Axis i of the result is axis permutation[i] of `x`.
Value Transpose(Value x, std::vector<int64_t> permutation);
// All axes turned round: for matrices the matrix transpose.
Value Transpose(Value x);

Value BroadcastTo(Value x, std::vector<int64_t> shape);
// To the shape of `like`, known only when the graph runs.
Value BroadcastLike(Value x, Value like);
// The reverse: `x` summed to the shape of `like`.
Value SumLike(Value x, Value like);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_SHAPE_OPS_H_
