#ifndef COMMON_COMPUTE_RUNTIME_TYPED_GRAPH_H_
#define COMMON_COMPUTE_RUNTIME_TYPED_GRAPH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// A typed graph is a Graph whose output types are all fully known. The rewrites
// for one plan work on typed graphs. They may use ops that exist only in
// kernels and not in the op registry.

// Returns `graph` as replica `replica` runs it if the arguments of replica r
// have types parameters[r]. A step of a single replica is replica 0 of one.
// Nodes that depend on the row counts of replicas get them as attributes.
//   kInvalidArgument  see SpecializeReplicaTypes()
absl::StatusOr<Graph> WithTypes(
    const Graph& graph, const OpRegistry& ops,
    absl::Span<const std::vector<TensorType>> parameters, int replica);

// `schema` is the schema of the node's op; ops that exist only in kernels have
// none.
KernelSpec SpecOf(const Graph& typed_graph, const Node& node,
                  const OpSchema& schema = {});

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_TYPED_GRAPH_H_
