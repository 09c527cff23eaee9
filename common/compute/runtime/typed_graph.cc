#include "common/compute/runtime/typed_graph.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_verifier.h"
#include "common/compute/runtime/replica_kernels.h"
#include "common/core/base/status_macros.h"

namespace muster {

namespace {

std::vector<int64_t> RowsByReplica(const std::vector<NodeTypes>& types,
                                   NodeOutput output) {
  std::vector<int64_t> rows;
  for (const NodeTypes& of_replica : types) {
    rows.push_back(of_replica[output.node][output.output].shape.dim(0));
  }
  return rows;
}

}  // namespace

absl::StatusOr<Graph> WithTypes(
    const Graph& graph, const OpRegistry& ops,
    absl::Span<const std::vector<TensorType>> parameters, int replica) {
  ASSIGN_OR_RETURN(const std::vector<NodeTypes> types,
                   SpecializeReplicaTypes(graph, ops, parameters));
  Graph typed = graph;
  for (size_t i = 0; i < typed.nodes.size(); ++i) {
    Node& node = typed.nodes[i];
    for (const TensorType& type : types[replica][i]) {
      if (type.shape.IsFullyKnown()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(node.op, " \"", node.name, "\" gives ", type.ToString(),
                       ", whose extents do not follow from the arguments"));
    }
    node.outputs = types[replica][i];
    const int input = ops.FindOrPlain(node.op).replica_rows_input;
    if (input != OpSchema::kNoInput) {
      node.attributes.Set(kReplicaRowsAttribute,
                          RowsByReplica(types, node.inputs[input]));
    }
  }
  return typed;
}

KernelSpec SpecOf(const Graph& typed_graph, const Node& node,
                  const OpSchema& schema) {
  KernelSpec spec = {
      .op = node.op,
      .attributes = node.attributes,
      .inputs = {},
      .outputs = node.outputs,
      .is_elementwise = schema.is_elementwise,
      .widens_low_precision =
          schema.low_precision == LowPrecisionPolicy::kThroughFloat32};
  for (const NodeOutput& input : node.inputs) {
    spec.inputs.push_back(typed_graph.TypeOf(input));
  }
  return spec;
}

}  // namespace muster
