#ifndef COMMON_COMPUTE_RUNTIME_ELEMENTWISE_FUSION_H_
#define COMMON_COMPUTE_RUNTIME_ELEMENTWISE_FUSION_H_

#include "absl/functional/function_ref.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"

namespace muster {

// Rewrites a typed graph so that consecutive elementwise ops become one op,
// kFusedElementwiseOp, if the device supports it. Intermediate values are then
// not stored in memory. Ops of the same shape are fused if no other node reads
// the intermediate values. Each reader of a Cast to a wider type computes the
// Cast itself. Broadcasts and scalar constants become part of the program.
// Nodes fused away are left dead.
//
// Equivalent to: the loop fusion of XLA.
void FuseElementwise(Graph* typed_graph, const OpRegistry& ops,
                     absl::FunctionRef<bool(const KernelSpec&)> is_supported);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_ELEMENTWISE_FUSION_H_
