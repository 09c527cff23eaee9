#ifndef COMMON_COMPUTE_OPS_BROADCAST_GRADIENT_H_
#define COMMON_COMPUTE_OPS_BROADCAST_GRADIENT_H_

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/shape.h"

namespace muster::internal {

// True if broadcasting `shape` with `other` may enlarge it, as far as their
// extents are known.
bool MayGrow(const Shape& shape, const Shape& other);

// Returns `gradient`, which has the broadcast shape of all operands, summed to
// the shape of `operand`. Adds no node if `operand` was not broadcast.
Value Unbroadcast(Value gradient, Value operand,
                  absl::Span<const Value> other_operands);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_OPS_BROADCAST_GRADIENT_H_
