#include "common/compute/runtime/matmul_fusion.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/runtime/typed_graph.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

// Returns how often each node's first output is read, including results.
std::vector<int> CountReaders(const Graph& graph) {
  std::vector<int> counts(graph.nodes.size(), 0);
  for (const Node& node : graph.nodes) {
    for (const NodeOutput& input : node.inputs) ++counts[input.node];
  }
  for (const NodeOutput& result : graph.results) ++counts[result.node];
  return counts;
}

// Returns "" if `node` is not an activation that can be fused.
std::string ActivationOf(const Node& node, const OpRegistry& ops) {
  const OpSchema::ActivationName name =
      ops.FindOrPlain(node.op).activation_name;
  return name == nullptr ? "" : name(node.attributes);
}

bool IsRowVector(const TensorType& type, const TensorType& product) {
  const Shape& shape = type.shape;
  const int64_t columns = product.shape.dims().back();
  return type.dtype == product.dtype && shape.rank() >= 1 &&
         shape.rank() <= 2 && shape.dims().back() == columns &&
         shape.element_count() == columns;
}

// True if the product multiplies rows by one matrix.
bool IsOfRows(const Graph& graph, const Node& matmul) {
  if (graph.TypeOf(matmul.inputs[1]).shape.rank() != 2) return false;
  return graph.TypeOf(matmul.inputs[0]).shape.rank() == 2 ||
         !matmul.attributes.GetOr("transpose_a", false);
}

// Returns the node that replaces `add` and the MatMul at its input
// `matmul_input`.
std::optional<Node> FuseBias(const Graph& graph, const Node& add,
                             int matmul_input,
                             const std::vector<int>& reader_counts) {
  const NodeOutput product = add.inputs[matmul_input];
  const NodeOutput bias = add.inputs[1 - matmul_input];
  const Node& matmul = graph.nodes[product.node];
  if (matmul.op != "MatMul" || reader_counts[product.node] != 1) return {};
  const TensorType& type = graph.TypeOf(product);
  if (!IsOfRows(graph, matmul) || type != add.outputs[0] ||
      !IsRowVector(graph.TypeOf(bias), type)) {
    return {};
  }
  Node fused = {.op = std::string(kFusedMatMulBiasOp),
                .name = add.name,
                .inputs = {matmul.inputs[0], matmul.inputs[1], bias},
                .control_inputs = add.control_inputs,
                .attributes = matmul.attributes,
                .outputs = add.outputs};
  fused.attributes.Set("activation", std::string());
  return fused;
}

// Returns the node that replaces `node`, which is the activation `name`.
std::optional<Node> FuseActivation(const Graph& graph, const Node& node,
                                   const std::string& name,
                                   const std::vector<int>& reader_counts) {
  const int input = node.inputs[0].node;
  if (graph.nodes[input].op != kFusedMatMulBiasOp ||
      reader_counts[input] != 1 ||
      graph.nodes[input].attributes.GetOr<std::string>("activation", "") !=
          "") {
    return {};
  }
  Node fused = graph.nodes[input];
  fused.name = node.name;
  fused.control_inputs = node.control_inputs;
  fused.attributes.Set("activation", name);
  return fused;
}

}  // namespace

void ReadReluOutputs(Graph* typed_graph, const OpRegistry& ops) {
  // For an op of a gradient and the node that a relu reads: the relu.
  absl::flat_hash_map<std::pair<std::string, int>, int> relus;
  for (size_t i = 0; i < typed_graph->nodes.size(); ++i) {
    Node& node = typed_graph->nodes[i];
    const std::string& gradient = ops.FindOrPlain(node.op).gradient_by_either;
    if (!gradient.empty()) {
      if (node.inputs[0].output != 0) continue;
      relus[{gradient, node.inputs[0].node}] = static_cast<int>(i);
    } else if (node.inputs.size() == 2 && node.inputs[1].output == 0) {
      const auto relu = relus.find({node.op, node.inputs[1].node});
      if (relu != relus.end()) node.inputs[1] = {relu->second, 0};
    }
  }
}

void FuseMatMulBias(Graph* typed_graph, const OpRegistry& ops,
                    absl::FunctionRef<bool(const KernelSpec&)> is_supported) {
  const std::vector<int> reader_counts = CountReaders(*typed_graph);
  for (Node& node : typed_graph->nodes) {
    std::optional<Node> fused;
    if (node.op == "Add") {
      fused = FuseBias(*typed_graph, node, 0, reader_counts);
      if (!fused) fused = FuseBias(*typed_graph, node, 1, reader_counts);
    } else if (const std::string name = ActivationOf(node, ops);
               !name.empty()) {
      fused = FuseActivation(*typed_graph, node, name, reader_counts);
    }
    if (fused && is_supported(SpecOf(*typed_graph, *fused))) {
      node = *std::move(fused);
    }
  }
}

}  // namespace muster
