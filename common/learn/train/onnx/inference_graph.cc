#include "common/learn/train/onnx/inference_graph.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/executable.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

// Smaller values are computed even if they are larger than their operands.
constexpr int64_t kComputedElementsMax = 4096;

DType Widened(DType dtype) {
  const bool is_narrow = dtype == DType::kBfloat16 || dtype == DType::kFloat16;
  return is_narrow ? DType::kFloat32 : dtype;
}

Tensor Widened(const Tensor& value) {
  if (Widened(value.dtype()) == value.dtype()) return value;
  Tensor wide(DType::kFloat32, value.shape());
  const auto elements = wide.mutable_flat<float>();
  for (int64_t i = 0; i < value.element_count(); ++i) {
    elements[i] = static_cast<float>(value.ElementAsDouble(i));
  }
  return wide;
}

Attributes Widened(const Attributes& attributes) {
  Attributes wide = attributes;
  for (const auto& [name, attribute] : attributes.values()) {
    if (const auto* dtype = std::get_if<DType>(&attribute)) {
      wide.Set(name, Widened(*dtype));
    } else if (const auto* tensor = std::get_if<Tensor>(&attribute)) {
      wide.Set(name, Widened(*tensor));
    }
  }
  return wide;
}

Graph Widened(const Graph& graph) {
  Graph wide = graph;
  for (Node& node : wide.nodes) {
    node.attributes = Widened(node.attributes);
    for (TensorType& type : node.outputs) type.dtype = Widened(type.dtype);
    for (auto& subgraph : node.subgraphs) {
      subgraph = std::make_shared<const Graph>(Widened(*subgraph));
    }
  }
  return wide;
}

bool IsConstant(const Node& node) { return node.op == kConstantOp; }

Node ConstantNode(const std::string& name, const Tensor& value) {
  return {.op = std::string(kConstantOp),
          .name = name,
          .attributes = {{"value", value}},
          .outputs = {value.type()}};
}

// Copies a graph node by node into another one.
class GraphCopier {
 public:
  explicit GraphCopier(const Graph& from) : from_(from), copies_(Count()) {
    to_.name = from.name;
    for (size_t i = 0; i < copies_.size(); ++i) {
      copies_[i].resize(from.nodes[i].outputs.size());
    }
  }

  int Add(Node node) {
    to_.nodes.push_back(std::move(node));
    return static_cast<int>(to_.nodes.size()) - 1;
  }
  // Adds a copy of node `i`, whose inputs have copies.
  int Copy(int i) {
    Node node = from_.nodes[i];
    for (NodeOutput& input : node.inputs) input = CopyOf(input);
    node.control_inputs.clear();
    const int copy = Add(std::move(node));
    for (size_t k = 0; k < copies_[i].size(); ++k) {
      Set({i, static_cast<int>(k)}, {copy, static_cast<int>(k)});
    }
    return copy;
  }
  void Set(NodeOutput original, NodeOutput copy) {
    copies_[original.node][original.output] = copy;
  }
  NodeOutput CopyOf(NodeOutput original) const {
    return copies_[original.node][original.output];
  }
  Graph& graph() { return to_; }

  // Returns the copy, of whose parameters and results all have copies.
  Graph Finish() && {
    for (const int parameter : from_.parameters) {
      to_.parameters.push_back(CopyOf({parameter, 0}).node);
    }
    for (const NodeOutput& result : from_.results) {
      to_.results.push_back(CopyOf(result));
    }
    return std::move(to_);
  }

 private:
  size_t Count() const { return from_.nodes.size(); }

  const Graph& from_;
  Graph to_;
  std::vector<std::vector<NodeOutput>> copies_;
};

absl::StatusOr<Graph> WithoutVariables(const Graph& graph,
                                       const VariableValues& values) {
  GraphCopier copier(graph);
  absl::flat_hash_map<std::string, int> constants;
  const auto read = [&](const Node& node) -> absl::StatusOr<NodeOutput> {
    ASSIGN_OR_RETURN(const std::string name,
                     node.attributes.Get<std::string>(kVariableAttribute));
    const auto value = values.find(name);
    if (value == values.end()) {
      return absl::NotFoundError(absl::StrCat("there is no value of variable ",
                                              name, ", which node ", node.name,
                                              " reads"));
    }
    const auto [known, is_new] = constants.try_emplace(name, -1);
    if (is_new) known->second = copier.Add(ConstantNode(name, value->second));
    return NodeOutput{known->second, 0};
  };
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const Node& node = graph.nodes[i];
    const OpSchema& schema = BuiltinOps().FindOrPlain(node.op);
    if (schema.effect == OpEffect::kUpdateVariable) {
      return absl::UnimplementedError(absl::StrCat(
          "cannot export to ONNX: node ", node.name, " (op ", node.op,
          ") updates a variable; an ONNX model has no state"));
    }
    if (schema.effect != OpEffect::kReadVariable) {
      copier.Copy(i);
      continue;
    }
    ASSIGN_OR_RETURN(const NodeOutput value, read(node));
    if (node.inputs.empty()) {
      copier.Set({i, 0}, value);
      continue;
    }
    copier.Set({i, 0},
               {copier.Add({.op = "Gather",
                            .name = node.name,
                            .inputs = {value, copier.CopyOf(node.inputs[0])},
                            .attributes = {{"axis", int64_t{0}}},
                            .outputs = node.outputs}),
                0});
  }
  return std::move(copier).Finish();
}

// Leaves out conversions to the dtype that the value has already.
Graph WithoutConversions(const Graph& graph) {
  GraphCopier copier(graph);
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const Node& node = graph.nodes[i];
    const bool is_conversion =
        node.op == "Cast" &&
        node.outputs[0].dtype == graph.TypeOf(node.inputs[0]).dtype;
    if (is_conversion) {
      copier.Set({i, 0}, copier.CopyOf(node.inputs[0]));
    } else {
      copier.Copy(i);
    }
  }
  return std::move(copier).Finish();
}

// True if the node can be computed from constants, of which its inputs have
// `input_elements` elements.
bool IsComputable(const Node& node, int64_t input_elements) {
  const OpSchema& schema = BuiltinOps().FindOrPlain(node.op);
  if (node.inputs.empty() || schema.reads != OpReads::kInputsOnly ||
      schema.effect != OpEffect::kNone || schema.subgraph_count > 0) {
    return false;
  }
  int64_t elements = 0;
  for (const TensorType& type : node.outputs) {
    if (!type.shape.IsFullyKnown() || type.dtype == DType::kString) {
      return false;
    }
    elements += type.shape.element_count();
  }
  return elements <= std::max(input_elements, kComputedElementsMax);
}

// Returns for each node whether it is, or can be, a constant.
std::vector<bool> FindConstants(const Graph& graph) {
  std::vector<bool> are_constant(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    int64_t input_elements = 0;
    bool has_others = false;
    for (const NodeOutput& input : node.inputs) {
      has_others = has_others || !are_constant[input.node];
      if (has_others) break;
      input_elements += graph.TypeOf(input).shape.element_count();
    }
    are_constant[i] =
        IsConstant(node) || (!has_others && IsComputable(node, input_elements));
  }
  return are_constant;
}

// Computes `outputs` of the nodes that are constant.
absl::StatusOr<std::vector<Tensor>> Compute(
    const Graph& graph, const std::vector<bool>& are_constant,
    const std::vector<NodeOutput>& outputs) {
  GraphCopier copier(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (are_constant[i]) copier.Copy(static_cast<int>(i));
  }
  for (const NodeOutput& output : outputs) {
    copier.graph().results.push_back(copier.CopyOf(output));
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Executable> executable,
      Executable::Compile(std::move(copier.graph()), BuiltinOps(), CpuKernels(),
                          /*variables=*/nullptr));
  std::vector<Tensor> results;
  RETURN_IF_ERROR(executable->Run({}, {}, &results));
  return results;
}

// Computes what depends on constants only.
absl::StatusOr<Graph> WithComputedConstants(const Graph& graph) {
  const std::vector<bool> are_constant = FindConstants(graph);
  std::vector<NodeOutput> needed;
  const auto need = [&](NodeOutput output) {
    const bool is_new =
        are_constant[output.node] && !IsConstant(graph.nodes[output.node]) &&
        std::find(needed.begin(), needed.end(), output) == needed.end();
    if (is_new) needed.push_back(output);
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (are_constant[i]) continue;
    for (const NodeOutput& input : graph.nodes[i].inputs) need(input);
  }
  for (const NodeOutput& result : graph.results) need(result);
  if (needed.empty()) return graph;

  ASSIGN_OR_RETURN(const std::vector<Tensor> computed,
                   Compute(graph, are_constant, needed));
  GraphCopier copier(graph);
  for (size_t i = 0; i < computed.size(); ++i) {
    const std::string& name = graph.nodes[needed[i].node].name;
    const std::string suffix =
        needed[i].output == 0 ? "" : absl::StrCat(":", needed[i].output);
    const int node = copier.Add(ConstantNode(name + suffix, computed[i]));
    copier.Set(needed[i], {node, 0});
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (are_constant[i] && !IsConstant(graph.nodes[i])) continue;
    copier.Copy(static_cast<int>(i));
  }
  return std::move(copier).Finish();
}

}  // namespace

absl::StatusOr<Graph> PrepareForExport(const Graph& graph,
                                       const VariableValues& values) {
  ASSIGN_OR_RETURN(const Graph constant, WithoutVariables(graph, values));
  return WithComputedConstants(WithoutConversions(Widened(constant)));
}

}  // namespace muster
