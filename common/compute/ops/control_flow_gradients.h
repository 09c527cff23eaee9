#ifndef COMMON_COMPUTE_OPS_CONTROL_FLOW_GRADIENTS_H_
#define COMMON_COMPUTE_OPS_CONTROL_FLOW_GRADIENTS_H_

#include "common/compute/graph/graph_builder.h"

// The gradient rules of branches and loops. All of them trace the subgraph once
// more, in the subgraph of a node that differentiates it, so that no value of
// it is kept but the carries of loops.
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
