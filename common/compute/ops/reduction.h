#ifndef COMMON_COMPUTE_OPS_REDUCTION_H_
#define COMMON_COMPUTE_OPS_REDUCTION_H_

#include <cstdint>
#include <vector>

#include "common/compute/graph/graph_builder.h"

// Reductions. Without `axes`, over all axes; with an empty list, over none.
// Negative axes count from the last one.
namespace muster {

struct ReduceOptions {
  bool keep_dims = false;  // Keeps reduced axes with extent 1.
};

Value Sum(Value x, std::vector<int64_t> axes, ReduceOptions options = {});
Value Sum(Value x);
// NaN for no elements. Integers are rounded towards zero.
Value Mean(Value x, std::vector<int64_t> axes, ReduceOptions options = {});
Value Mean(Value x);
// For no elements: the lowest (highest) value of the dtype, infinite for
// floats. Equal maxima share the gradient.
Value Max(Value x, std::vector<int64_t> axes, ReduceOptions options = {});
Value Max(Value x);
Value Min(Value x, std::vector<int64_t> axes, ReduceOptions options = {});
Value Min(Value x);
Value Prod(Value x, std::vector<int64_t> axes, ReduceOptions options = {});
Value Prod(Value x);

// The index of the first greatest (least) element along `axis`, as int64.
Value ArgMax(Value x, int64_t axis);
Value ArgMin(Value x, int64_t axis);

// The number of elements along `axes` as a float32 scalar: the divisor of a
// mean over extents that are unknown while tracing.
Value CountAlong(Value x, std::vector<int64_t> axes);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_REDUCTION_H_
