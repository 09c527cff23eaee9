#include "common/compute/graph/graph_verifier.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

absl::Status NodeError(const Node& node, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("graph node \"", node.name, "\" (", node.op, ") ", what));
}

absl::Status VerifyEdges(const Graph& graph, int index) {
  const Node& node = graph.nodes[index];
  for (const NodeOutput& input : node.inputs) {
    if (input.node < 0 || input.node >= index) {
      return NodeError(node, absl::StrCat("reads node ", input.node,
                                          ", which does not come before it"));
    }
    const int output_count =
        static_cast<int>(graph.nodes[input.node].outputs.size());
    if (input.output < 0 || input.output >= output_count) {
      return NodeError(node,
                       absl::StrCat("reads output ", input.output, " of node ",
                                    input.node, ", which has ", output_count));
    }
  }
  for (const int control : node.control_inputs) {
    if (control < 0 || control >= index) {
      return NodeError(node,
                       absl::StrCat("has a control input from node ", control,
                                    ", which does not come before it"));
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyTypes(const Graph& graph, int index,
                         const OpRegistry& registry) {
  const Node& node = graph.nodes[index];
  std::vector<TensorType> inputs;
  for (const NodeOutput& input : node.inputs) {
    inputs.push_back(graph.TypeOf(input));
  }
  ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                   registry.InferTypes(node.op, node.name,
                                       {.inputs = inputs,
                                        .attributes = node.attributes,
                                        .subgraphs = node.subgraphs}));
  if (types != node.outputs) {
    return NodeError(node,
                     "declares output types that differ from those of its op");
  }
  if (registry.Find(node.op)->uses_variable()) {
    return node.attributes.Get<std::string>(kVariableAttribute).status();
  }
  return absl::OkStatus();
}

absl::Status VerifyInterface(const Graph& graph) {
  const int node_count = static_cast<int>(graph.nodes.size());
  std::set<int> parameters;
  for (const int parameter : graph.parameters) {
    if (parameter < 0 || parameter >= node_count ||
        graph.nodes[parameter].op != kParameterOp ||
        !parameters.insert(parameter).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "graph \"", graph.name, "\": node ", parameter,
          " is not a Parameter, or is listed twice among the parameters"));
    }
  }
  for (int i = 0; i < node_count; ++i) {
    if (graph.nodes[i].op == kParameterOp && !parameters.contains(i)) {
      return NodeError(graph.nodes[i], "is not among the graph's parameters");
    }
  }
  for (const NodeOutput& result : graph.results) {
    if (result.node < 0 || result.node >= node_count || result.output < 0 ||
        result.output >=
            static_cast<int>(graph.nodes[result.node].outputs.size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "graph \"", graph.name, "\" returns output ", result.output,
          " of node ", result.node, ", which does not exist"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMayBeInSubgraph(const Node& node,
                                  const OpRegistry& registry) {
  const OpSchema* const schema = registry.Find(node.op);
  if (schema == nullptr || schema->may_be_in_subgraph()) {
    return absl::OkStatus();
  }
  return NodeError(node, "cannot be part of a branch or of the body of a loop");
}

// `node_count` is the number of nodes of all graphs so far.
absl::Status VerifyGraphAt(const Graph& graph, const OpRegistry& registry,
                           int depth, int64_t* node_count) {
  *node_count += static_cast<int64_t>(graph.nodes.size());
  if (*node_count > kNodeCountMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("graph \"", graph.name, "\" makes it ", *node_count,
                     " nodes; the limit is ", kNodeCountMax));
  }
  if (depth > kSubgraphDepthMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("graph \"", graph.name, "\" is at depth ", depth,
                     " of subgraphs; the limit is ", kSubgraphDepthMax));
  }
  std::set<std::string> names;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const Node& node = graph.nodes[i];
    if (!names.insert(node.name).second) {
      return NodeError(node, "has the same name as an earlier node");
    }
    if (depth > 0) RETURN_IF_ERROR(CheckMayBeInSubgraph(node, registry));
    RETURN_IF_ERROR(VerifyEdges(graph, i));
    // Type rules derive types along the edges of subgraphs.
    for (const auto& subgraph : node.subgraphs) {
      RETURN_IF_ERROR(
          VerifyGraphAt(*subgraph, registry, depth + 1, node_count));
    }
    RETURN_IF_ERROR(VerifyTypes(graph, i, registry));
  }
  return VerifyInterface(graph);
}

}  // namespace

absl::Status VerifyGraph(const Graph& graph, const OpRegistry& registry) {
  int64_t node_count = 0;
  return VerifyGraphAt(graph, registry, 0, &node_count);
}

absl::Status CheckArguments(const Graph& graph,
                            absl::Span<const TensorType> arguments) {
  if (arguments.size() != graph.parameters.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "graph \"", graph.name, "\" takes ", graph.parameters.size(),
        " arguments; got ", arguments.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Node& node = graph.nodes[graph.parameters[i]];
    const TensorType& declared = node.outputs[0];
    if (arguments[i].dtype == declared.dtype &&
        arguments[i].shape.IsCompatibleWith(declared.shape)) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "graph \"", graph.name, "\": argument ", i, " (\"",
        node.attributes.GetOr<std::string>("name", ""), "\") is declared ",
        declared.ToString(), "; got ", arguments[i].ToString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<NodeTypes> SpecializeTypes(
    const Graph& graph, const OpRegistry& registry,
    absl::Span<const TensorType> parameters) {
  const std::vector<TensorType> own(parameters.begin(), parameters.end());
  ASSIGN_OR_RETURN(std::vector<NodeTypes> types,
                   SpecializeReplicaTypes(graph, registry, {own}));
  return std::move(types[0]);
}

absl::StatusOr<std::vector<NodeTypes>> SpecializeReplicaTypes(
    const Graph& graph, const OpRegistry& registry,
    absl::Span<const std::vector<TensorType>> parameters) {
  std::vector<NodeTypes> types(parameters.size(),
                               NodeTypes(graph.nodes.size()));
  for (size_t replica = 0; replica < parameters.size(); ++replica) {
    RETURN_IF_ERROR(CheckArguments(graph, parameters[replica]));
    for (size_t i = 0; i < graph.parameters.size(); ++i) {
      types[replica][graph.parameters[i]] = {parameters[replica][i]};
    }
  }
  // The input types of one node in each replica.
  std::vector<std::vector<TensorType>> inputs(parameters.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op == kParameterOp) continue;
    for (size_t replica = 0; replica < parameters.size(); ++replica) {
      inputs[replica].clear();
      for (const NodeOutput& input : node.inputs) {
        inputs[replica].push_back(types[replica][input.node][input.output]);
      }
    }
    for (size_t replica = 0; replica < parameters.size(); ++replica) {
      ASSIGN_OR_RETURN(types[replica][i],
                       registry.InferTypes(node.op, node.name,
                                           {.inputs = inputs[replica],
                                            .attributes = node.attributes,
                                            .replica_inputs = inputs,
                                            .subgraphs = node.subgraphs}));
    }
  }
  return types;
}

}  // namespace muster
