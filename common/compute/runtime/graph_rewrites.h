#ifndef COMMON_COMPUTE_RUNTIME_GRAPH_REWRITES_H_
#define COMMON_COMPUTE_RUNTIME_GRAPH_REWRITES_H_

#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"

namespace muster {

// Rewrites keep what a graph computes and the order of effects on each
// variable. Pure functions.

// Without the nodes that no result and no effect on others depends on.
// Parameters stay: they are the graph's interface. So do collectives that
// no caller asks for, because other replicas may wait for them.
Graph DropDeadNodes(const Graph& graph, const OpRegistry& ops);

// Orders the nodes so that each follows the nodes that it reads: a rewrite may
// append nodes that earlier ones read. Nodes keep their order otherwise.
void SortNodes(Graph* graph);

// Moves each variable update forward to where its value is known and earlier
// reads of the variable have been used up. A gradient is then handed to the
// store while the rest of backward still runs, and the store finds the variable
// unshared and updates it in place.
Graph ApplyUpdatesEarly(const Graph& graph, const OpRegistry& ops);

// In a typed graph: lets readers of a node that changes neither type nor data
// (Identity, a broadcast to its own shape, ...) read that node's input, and
// turns ReshapeLike into Reshape. Nodes passed by are left dead.
void BypassNoOps(Graph* typed_graph, const OpRegistry& ops);

// In a typed graph: lets nodes with the attribute "keep_steps" do without the
// outputs that they have because of it, if nothing reads them. These are the
// last outputs; only gradients need them.
void DropUnreadSteps(Graph* typed_graph, const OpRegistry& ops);

// In a typed graph: lets nodes that are given an input for its type only do
// without it, so that its memory is free earlier.
void DropTypeInputs(Graph* typed_graph, const OpRegistry& ops);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_GRAPH_REWRITES_H_
