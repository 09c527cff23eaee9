#ifndef COMMON_COMPUTE_RUNTIME_ELEMENTWISE_FUSION_H_
#define COMMON_COMPUTE_RUNTIME_ELEMENTWISE_FUSION_H_

#include "absl/functional/function_ref.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"

namespace muster {

// Rewrites a typed graph so that elementwise ops that follow each other are
// one, kFusedElementwiseOp, where the device supports it: what lies between
// them is then neither written to memory nor read. Ops are joined that have the
// same shape, if no other node reads what lies between; a Cast to a wider type
// is computed by each of its readers. Broadcasts and scalar constants become
// part of the program. Nodes fused away are left dead.
//
// Equivalent to: the loop fusion of XLA.
void FuseElementwise(Graph* typed_graph, const OpRegistry& ops,
                     absl::FunctionRef<bool(const KernelSpec&)> is_supported);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_ELEMENTWISE_FUSION_H_
