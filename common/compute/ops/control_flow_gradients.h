#ifndef COMMON_COMPUTE_OPS_CONTROL_FLOW_GRADIENTS_H_
#define COMMON_COMPUTE_OPS_CONTROL_FLOW_GRADIENTS_H_

#include "common/compute/graph/graph_builder.h"

// The gradient rules of branches and loops. Each rule traces the subgraph
// again, in a subgraph of the node that differentiates it. So only the carries
// of loops are kept from the forward pass.
namespace muster::internal {

// A Cond whose branches are the gradients of the branches.
void CondGradient(GradientContext& context);

// A Scan in the other direction, whose carry is the gradient of the carry, and
// the sums of the gradients of captured values.
void ScanGradient(GradientContext& context);

// A While that counts down from the number of iterations. Reports
// kInvalidArgument if the loop has no limit.
void WhileGradient(GradientContext& context);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_OPS_CONTROL_FLOW_GRADIENTS_H_
