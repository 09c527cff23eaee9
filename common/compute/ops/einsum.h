#ifndef COMMON_COMPUTE_OPS_EINSUM_H_
#define COMMON_COMPUTE_OPS_EINSUM_H_

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"

namespace muster {

// Sums of products along labelled axes: Einsum("bij,bjk->bik", a, b) is a batch
// of matrix products. A label is a letter and names one axis of each operand
// that has it; labels that are not in the output are summed over. Each operand
// has a label at most once. All extents but one must be known while tracing.
//
// Becomes transposes, reshapes and one MatMul. Gradients flow to both operands.
//
// Equivalent to: tf.einsum of two operands without "...".
Value Einsum(absl::string_view equation, Value a, Value b);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_EINSUM_H_
