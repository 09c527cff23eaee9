#ifndef COMMON_COMPUTE_GRAPH_GRAPH_H_
#define COMMON_COMPUTE_GRAPH_GRAPH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// A step as data: a typed dataflow graph. GraphBuilder traces graphs and
// DecodeGraph() decodes them. Graphs are then verified, differentiated,
// rewritten, printed and compiled.
//
// Nodes are listed in execution order and run in that order, so effects happen
// in the order in which they were traced.

// Output `output` of node `node`.
struct NodeOutput {
  int node = -1;
  int output = 0;

  bool operator==(const NodeOutput&) const = default;
};

struct Graph;

// The graphs that a node of control flow runs: branches, or the body of a loop.
// Their parameters are inputs of the node; they use no other values, and no
// variables.
using Subgraphs = std::vector<std::shared_ptr<const Graph>>;

struct Node {
  std::string op;
  std::string name;  // Unique within the graph.
  std::vector<NodeOutput> inputs;
  std::vector<int> control_inputs;  // Nodes that must run before this one.
  Attributes attributes;
  std::vector<TensorType> outputs;
  Subgraphs subgraphs;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  // The "Parameter" nodes, in the order of the arguments.
  std::vector<int> parameters;
  std::vector<NodeOutput> results;

  const TensorType& TypeOf(NodeOutput output) const {
    return nodes[output.node].outputs[output.output];
  }

  // Returns the graph as text, one line for each node:
  //   %3 = MatMul(%0, %2) {transpose_b=true} : float32[?,10]  # dense/MatMul
  // The subgraphs of a node follow its line, indented.
  std::string ToString() const;
};

// The ops that graphs themselves depend on. common/compute/ops defines all
// others.
inline constexpr absl::string_view kParameterOp = "Parameter";
inline constexpr absl::string_view kConstantOp = "Constant";

// The attribute with the name of the variable that an op reads or updates.
inline constexpr absl::string_view kVariableAttribute = "variable";

}  // namespace muster

#endif  // COMMON_COMPUTE_GRAPH_GRAPH_H_
