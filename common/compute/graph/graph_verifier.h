#ifndef COMMON_COMPUTE_GRAPH_GRAPH_VERIFIER_H_
#define COMMON_COMPUTE_GRAPH_GRAPH_VERIFIER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Verifies a graph from an untrusted source: every op exists, every edge refers
// to an existing output of an earlier node, every type is what the op's rule
// derives, and names are unique. The same holds for subgraphs, which contain
// only ops that are allowed there.
//   kInvalidArgument    the graph is invalid; the message names the node and
//                       the error
//   kResourceExhausted  more than kNodeCountMax nodes including those of
//                       subgraphs, or subgraphs nested more than
//                       kSubgraphDepthMax deep
inline constexpr int kNodeCountMax = 1 << 20;
inline constexpr int kSubgraphDepthMax = 16;
absl::Status VerifyGraph(const Graph& graph, const OpRegistry& registry);

// Checks that arguments of types `arguments` match the declared parameters.
//   kInvalidArgument  the number or a type does not match; the message names
//                     the parameter
absl::Status CheckArguments(const Graph& graph,
                            absl::Span<const TensorType> arguments);

// Returns the types of all nodes if the parameters have the types `parameters`,
// which must be compatible with the declared ones.
//   kInvalidArgument  as CheckArguments(), or extents are inconsistent; the
//                     message names op, node and shapes
using NodeTypes = std::vector<std::vector<TensorType>>;  // [node][output]
absl::StatusOr<NodeTypes> SpecializeTypes(
    const Graph& graph, const OpRegistry& registry,
    absl::Span<const TensorType> parameters);

// Returns the types of all nodes in every replica, [replica], if the parameters
// of replica r have the types parameters[r]. Deterministic: all replicas
// compute the same types or the same error.
absl::StatusOr<std::vector<NodeTypes>> SpecializeReplicaTypes(
    const Graph& graph, const OpRegistry& registry,
    absl::Span<const std::vector<TensorType>> parameters);

}  // namespace muster

#endif  // COMMON_COMPUTE_GRAPH_GRAPH_VERIFIER_H_
