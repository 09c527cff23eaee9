#ifndef COMMON_COMPUTE_RUNTIME_GRAPH_REWRITES_H_
#define COMMON_COMPUTE_RUNTIME_GRAPH_REWRITES_H_

#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"

namespace muster {

// Rewrites preserve the results of a graph and the order of effects on each
// variable. Pure functions.

// Returns the graph without nodes that no result and no effect depends on.
// Keeps parameters, which are the graph's interface, and collectives without
// readers, because other replicas may wait for them.
Graph DropDeadNodes(const Graph& graph, const OpRegistry& ops);

// Orders the nodes so that each follows the nodes that it reads, because a
// rewrite may append nodes that earlier ones read. Otherwise nodes keep their
// order.
void SortNodes(Graph* graph);

// Moves each variable update forward to where its value is known and earlier
// reads of the variable have been used up. The store then gets a gradient while
// the rest of the backward pass still runs, and can update the variable in
// place because no other tensor shares its value.
Graph ApplyUpdatesEarly(const Graph& graph, const OpRegistry& ops);

// In a typed graph: for each node that changes neither type nor data (Identity,
// a broadcast to its own shape, ...), redirects the node's readers to its
// input. Turns ReshapeLike into Reshape. Bypassed nodes are left dead.
void BypassNoOps(Graph* typed_graph, const OpRegistry& ops);

// In a typed graph: turns nodes whose results depend only on types into
// constants (CountAlong, small OnesLike and ZerosLike), and PadLike into Pad.
void FoldTypes(Graph* typed_graph);

// In a typed graph: clears the attribute "keep_steps" of nodes whose additional
// outputs no node reads. These are the last outputs; only gradients need them.
void DropUnreadSteps(Graph* typed_graph, const OpRegistry& ops);

// In a typed graph: removes inputs that a node uses only for their type, so
// that their memory is released earlier.
void DropTypeInputs(Graph* typed_graph, const OpRegistry& ops);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_GRAPH_REWRITES_H_
