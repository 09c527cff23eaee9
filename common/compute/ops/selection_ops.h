#ifndef COMMON_COMPUTE_OPS_SELECTION_OPS_H_
#define COMMON_COMPUTE_OPS_SELECTION_OPS_H_

#include <cstdint>

#include "common/compute/graph/graph_builder.h"

// Selections whose number of results depends on the data. The shapes of a step
// must not, so the caller gives the number of rows of the result: further rows
// are dropped, and missing ones are `fill_value`. `count` is the number of rows
// found. JAX has the same rule: jax.numpy.nonzero(size=, fill_value=).
namespace muster {

struct SelectionOptions {
  int64_t size = 0;  // Rows of the result. Required: at least 1.
  double fill_value = 0;
};

struct MaskedRows {
  Value values;  // [size, ...]
  Value count;   // int32 []: the number of true elements, also above `size`.
};
// The rows of `x` at which `mask` is true, in their order. `mask` is bool, and
// its shape is that of the first axes of `x`; if it has several, the other
// extents of `x` must be known while tracing. Gradients flow to the rows that
// were selected.
//
// Equivalent to: tf.boolean_mask, with a size.
MaskedRows BooleanMask(Value x, Value mask, const SelectionOptions& options);

struct UniqueValues {
  Value values;   // [size]: in the order in which they first appear in x.
  Value indices;  // int32 [n]: x[i] is value indices[i], also from `size` on.
  Value count;    // int32 []: the number of different values.
};
// The different elements of `x`, numbers [n] with n known while tracing. NaN
// differs from NaN. Gradients flow to the first element of each value.
//
// Equivalent to: tf.unique, with a size.
UniqueValues Unique(Value x, const SelectionOptions& options);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_SELECTION_OPS_H_
