#ifndef COMMON_COMPUTE_OPS_BROADCAST_GRADIENT_H_
#define COMMON_COMPUTE_OPS_BROADCAST_GRADIENT_H_

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/shape.h"

namespace muster::internal {

// Whether `shape` broadcast with `other` may be larger than `shape`, as far as
// their known extents tell.
bool MayGrow(const Shape& shape, const Shape& other);

// `gradient`, which has the shape of all operands broadcast together, summed to
// the shape of `operand`. Adds no node where `operand` was not broadcast.
Value Unbroadcast(Value gradient, Value operand,
                  absl::Span<const Value> other_operands);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_OPS_BROADCAST_GRADIENT_H_
