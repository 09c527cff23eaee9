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

// A typed graph is a Graph whose output types are all fully known: what the
// rewrites for one plan work on. They may leave the op registry behind and use
// ops that only kernels know.

// `graph` as replica `replica` runs it when the arguments of replica r have
// types parameters[r]; a step that runs alone is replica 0 of one. Nodes that
// ask how many rows the replicas have are told.
//   kInvalidArgument  see SpecializeReplicaTypes()
absl::StatusOr<Graph> WithTypes(
    const Graph& graph, const OpRegistry& ops,
    absl::Span<const std::vector<TensorType>> parameters, int replica);

// `schema` is that of the node's op; ops that only kernels know have none.
KernelSpec SpecOf(const Graph& typed_graph, const Node& node,
                  const OpSchema& schema = {});

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_TYPED_GRAPH_H_
