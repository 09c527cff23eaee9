#ifndef COMMON_COMPUTE_OPS_SHAPE_OPS_H_
#define COMMON_COMPUTE_OPS_SHAPE_OPS_H_

#include <cstdint>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/dtype.h"

// Conversions of dtype and shape. Negative axes count from the last one.
namespace muster {

// Converts as TensorFlow does: floats to integers by truncation, numbers to
// bool by x != 0. A float outside of the integer's range becomes the nearest
// integer, NaN becomes 0.
Value Cast(Value x, DType dtype);

// One extent of `shape` may be -1 and is inferred.
Value Reshape(Value x, std::vector<int64_t> shape);
// Reshapes to the shape of `like`, which may be unknown while tracing.
Value ReshapeLike(Value x, Value like);

Value ExpandDims(Value x, int64_t axis);
// Removes axes of extent 1: the given ones, or all that are known to be 1.
Value Squeeze(Value x, std::vector<int64_t> axes);
Value Squeeze(Value x);

// Axis i of the result is axis permutation[i] of `x`.
Value Transpose(Value x, std::vector<int64_t> permutation);
// Reverses the axes: the transpose of a matrix.
Value Transpose(Value x);

Value BroadcastTo(Value x, std::vector<int64_t> shape);
// Broadcasts to the shape of `like`, which may be unknown while tracing.
Value BroadcastLike(Value x, Value like);
// The reverse of BroadcastLike(): `x` summed to the shape of `like`.
Value SumLike(Value x, Value like);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_SHAPE_OPS_H_
