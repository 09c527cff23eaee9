#ifndef COMMON_COMPUTE_OPS_SORT_OPS_H_
#define COMMON_COMPUTE_OPS_SORT_OPS_H_

#include <cstdint>

#include "common/compute/graph/graph_builder.h"

// Orders of numbers along the last axis. Equal numbers keep their order, and
// NaN comes last.
namespace muster {

struct TopKOutputs {
  Value values;   // [..., k]
  Value indices;  // int32 [..., k]: positions in the rows of x.
};
// The `k` greatest elements of each row, the greatest first. Gradients flow to
// the selected elements.
//
// Equivalent to: tf.math.top_k.
TopKOutputs TopK(Value x, int64_t k);

struct SortOptions {
  bool descending = false;
};
// The last extent must be known while tracing.
//
// Equivalent to: tf.sort and tf.argsort.
Value Sort(Value x, SortOptions options = {});
Value ArgSort(Value x, SortOptions options = {});

// Returns x[..., indices[..., j]] for each j of each row: x is [..., n],
// indices are int32 or int64 [..., k]. An index out of range fails the step.
//
// Equivalent to: tf.gather with batch_dims = -1, numpy.take_along_axis.
Value TakeAlongRows(Value x, Value indices);

// The gradient of TakeAlongRows: zeros of the type of `like`, with `values`
// added at `indices` of each row.
Value AddAlongRowsLike(Value values, Value indices, Value like);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_SORT_OPS_H_
