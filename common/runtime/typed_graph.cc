#include "common/runtime/typed_graph.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/graph/graph_verifier.h"

namespace muster {

absl::StatusOr<Graph> WithTypes(const Graph& graph, const OpRegistry& ops,
                                absl::Span<const TensorType> parameters) {
  ASSIGN_OR_RETURN(auto types, SpecializeTypes(graph, ops, parameters));
  Graph typed = graph;
  for (size_t i = 0; i < typed.nodes.size(); ++i) {
    for (const TensorType& type : types[i]) {
      if (type.shape.IsFullyKnown()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          typed.nodes[i].op, " \"", typed.nodes[i].name, "\" gives ",
          type.ToString(), ", whose extents do not follow from the arguments"));
    }
    typed.nodes[i].outputs = std::move(types[i]);
  }
  return typed;
}

KernelSpec SpecOf(const Graph& typed_graph, const Node& node) {
  KernelSpec spec = {.op = node.op,
                     .attributes = node.attributes,
                     .inputs = {},
                     .outputs = node.outputs};
  for (const NodeOutput& input : node.inputs) {
    spec.inputs.push_back(typed_graph.TypeOf(input));
  }
  return spec;
}

}  // namespace muster
