#ifndef COMMON_RUNTIME_TYPED_GRAPH_H_
#define COMMON_RUNTIME_TYPED_GRAPH_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/graph.h"
#include "common/graph/op_registry.h"
#include "common/kernels/kernel.h"
#include "common/tensor/tensor.h"

namespace muster {

// A typed graph is a Graph whose output types are all fully known: what the
// rewrites for one plan work on. They may leave the op registry behind and use
// ops that only kernels know.

// `graph` for arguments of types `parameters`.
//   kInvalidArgument  see SpecializeTypes()
absl::StatusOr<Graph> WithTypes(const Graph& graph, const OpRegistry& ops,
                                absl::Span<const TensorType> parameters);

KernelSpec SpecOf(const Graph& typed_graph, const Node& node);

}  // namespace muster

#endif  // COMMON_RUNTIME_TYPED_GRAPH_H_
