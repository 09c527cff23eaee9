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

// Graphs arrive over the network, so nothing about one is believed until this
// has looked: every op exists, every edge points back to an output that is
// there, every type is what the op's rule derives, and names are unique.
//
//   kInvalidArgument   names the node and what is wrong with it
//   kResourceExhausted more than kNodeCountMax nodes
inline constexpr int kNodeCountMax = 1 << 20;
absl::Status VerifyGraph(const Graph& graph, const OpRegistry& registry);

// Whether arguments of types `arguments` fit the declared parameters.
//   kInvalidArgument   their number or a type does not; names the parameter
absl::Status CheckArguments(const Graph& graph,
                            absl::Span<const TensorType> arguments);

// The types of all nodes when the arguments have types `parameters`, which must
// be compatible with the declared ones.
//
//   kInvalidArgument   the argument count or an argument's type does not fit;
//                      or extents do not fit each other, and then the message
//                      names op, node and shapes
using NodeTypes = std::vector<std::vector<TensorType>>;  // [node][output]
absl::StatusOr<NodeTypes> SpecializeTypes(
    const Graph& graph, const OpRegistry& registry,
    absl::Span<const TensorType> parameters);

// The types of all nodes in every replica, [replica], when replica r has
// arguments of types parameters[r]. All replicas that are given the same
// arguments get the same answer, errors among them.
absl::StatusOr<std::vector<NodeTypes>> SpecializeReplicaTypes(
    const Graph& graph, const OpRegistry& registry,
    absl::Span<const std::vector<TensorType>> parameters);

}  // namespace muster

#endif  // COMMON_COMPUTE_GRAPH_GRAPH_VERIFIER_H_
