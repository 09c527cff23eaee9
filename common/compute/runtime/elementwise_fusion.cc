#include "common/compute/runtime/elementwise_fusion.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/compute/kernels/elementwise_program.h"
#include "common/compute/runtime/typed_graph.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

// Indices of nodes in ascending order.
using Group = std::set<int>;

class ElementwiseFusion {
 public:
  ElementwiseFusion(Graph* graph, const OpRegistry& ops,
                    absl::FunctionRef<bool(const KernelSpec&)> is_supported)
      : graph_(*graph),
        ops_(ops),
        is_supported_(is_supported),
        readers_(graph->nodes.size()),
        is_fixed_(graph->nodes.size(), false),
        is_constant_(graph->nodes.size(), false),
        is_absorbed_(graph->nodes.size(), false) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) ReadNode(i);
    for (const NodeOutput& result : graph_.results) {
      is_fixed_[result.node] = true;
    }
  }

  void Run() {
    for (int i = static_cast<int>(graph_.nodes.size()) - 1; i >= 0; --i) {
      if (!IsCandidate(i) || !IsRead(i)) continue;
      const Group group = GroupOf(i);
      if (group.size() == 1) continue;
      graph_.nodes[i] = Fused(group);
      for (const int member : group) {
        is_absorbed_[member] = member != i && AreReadersIn(member, group);
      }
      for (const NodeOutput& input : graph_.nodes[i].inputs) {
        readers_[input.node].push_back(i);
      }
    }
  }

 private:
  void ReadNode(size_t i) {
    const Node& node = graph_.nodes[i];
    bool is_constant = !node.inputs.empty();
    for (const NodeOutput& input : node.inputs) {
      readers_[input.node].push_back(static_cast<int>(i));
      is_constant = is_constant && is_constant_[input.node];
    }
    // The plan computes constants once.
    is_constant_[i] = node.op == kConstantOp || is_constant;
    for (const int before : node.control_inputs) is_fixed_[before] = true;
  }

  // A program broadcasts its inputs as it reads them.
  static bool IsBroadcast(const Node& node) { return node.op == "BroadcastTo"; }

  static bool IsComputedInFloat(DType dtype) {
    return dtype == DType::kFloat32 || dtype == DType::kBfloat16 ||
           dtype == DType::kFloat16 || dtype == DType::kBool;
  }

  // False if other nodes have absorbed the node's computation.
  bool IsRead(int i) const {
    if (is_fixed_[i]) return true;
    return std::any_of(readers_[i].begin(), readers_[i].end(), [&](int reader) {
      const std::vector<NodeOutput>& inputs = graph_.nodes[reader].inputs;
      return !is_absorbed_[reader] && std::any_of(inputs.begin(), inputs.end(),
                                                  [i](const NodeOutput& input) {
                                                    return input.node == i;
                                                  });
    });
  }

  bool AreReadersIn(int i, const Group& group) const {
    return std::all_of(readers_[i].begin(), readers_[i].end(),
                       [&](int reader) { return group.contains(reader); });
  }

  // True if it is cheaper for each reader to recompute the value than to read
  // it.
  bool IsWidening(const Node& node) const {
    return node.op == "Cast" && SizeOf(graph_.TypeOf(node.inputs[0]).dtype) <
                                    SizeOf(node.outputs[0].dtype);
  }

  // True if the node can be a step of a program.
  bool IsCandidate(int i) const {
    const Node& node = graph_.nodes[i];
    if (is_constant_[i] || node.inputs.empty() || node.outputs.size() != 1 ||
        !node.control_inputs.empty() || !node.subgraphs.empty() ||
        !(ops_.FindOrPlain(node.op).is_elementwise || IsBroadcast(node)) ||
        !IsComputedInFloat(node.outputs[0].dtype)) {
      return false;
    }
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](const NodeOutput& input) {
                         return IsComputedInFloat(graph_.TypeOf(input).dtype);
                       });
  }

  // Returns the node and the earlier nodes that are fused with it.
  Group GroupOf(int root) const {
    Group group = {root};
    std::vector<int> added = {root};
    while (!added.empty()) {
      const Node& node = graph_.nodes[added.back()];
      added.pop_back();
      for (const NodeOutput& input : node.inputs) {
        const int producer = input.node;
        if (group.contains(producer) || !MayJoin(producer, root, group)) {
          continue;
        }
        Group larger = group;
        larger.insert(producer);
        if (!is_supported_(SpecOf(graph_, Fused(larger)))) continue;
        group = std::move(larger);
        added.push_back(producer);
      }
    }
    return group;
  }

  bool MayJoin(int producer, int root, const Group& group) const {
    const Node& node = graph_.nodes[producer];
    if (!IsCandidate(producer) ||
        node.outputs[0].shape != graph_.nodes[root].outputs[0].shape) {
      return false;
    }
    if (IsWidening(node)) return true;
    // If a reader were also computed outside the group, the producer would be
    // computed twice.
    return !is_fixed_[producer] &&
           std::all_of(readers_[producer].begin(), readers_[producer].end(),
                       [&](int reader) {
                         return reader == root || (group.contains(reader) &&
                                                   AreReadersIn(reader, group));
                       });
  }

  // Returns the node that replaces the last node of the group.
  Node Fused(const Group& group) const {
    const Node& root = graph_.nodes[*group.rbegin()];
    Node fused = {.op = std::string(kFusedElementwiseOp),
                  .name = root.name,
                  .inputs = {},
                  .control_inputs = {},
                  .attributes = {},
                  .outputs = root.outputs,
                  .subgraphs = {}};
    std::map<std::pair<int, int>, int64_t> inputs;
    for (const int member : group) {
      for (const NodeOutput& input : graph_.nodes[member].inputs) {
        if (group.contains(input.node) ||
            IsImmediate(graph_.nodes[member], input)) {
          continue;
        }
        const auto position = static_cast<int64_t>(inputs.size());
        if (inputs.emplace(std::pair(input.node, input.output), position)
                .second) {
          fused.inputs.push_back(input);
        }
      }
    }
    ElementwiseProgram program;
    program.input_count = static_cast<int64_t>(fused.inputs.size());
    // By node: the number of its result as a source.
    std::map<int, int64_t> results;
    for (const int member : group) {
      results[member] =
          program.input_count + static_cast<int64_t>(program.steps.size());
      program.steps.push_back(StepOf(graph_.nodes[member], inputs, results));
    }
    fused.attributes = program.ToAttributes();
    return fused;
  }

  bool IsScalarConstant(NodeOutput value) const {
    return graph_.nodes[value.node].op == kConstantOp &&
           graph_.TypeOf(value).shape.element_count() == 1;
  }

  // A step has room for one immediate number besides its sources.
  bool IsImmediate(const Node& node, NodeOutput input) const {
    if (!IsScalarConstant(input) || node.attributes.Has("alpha")) return false;
    return std::count_if(node.inputs.begin(), node.inputs.end(),
                         [&](const NodeOutput& other) {
                           return IsScalarConstant(other);
                         }) == 1;
  }

  ElementwiseProgram::Step StepOf(
      const Node& node, const std::map<std::pair<int, int>, int64_t>& inputs,
      const std::map<int, int64_t>& results) const {
    ElementwiseProgram::Step step = {
        .op = IsBroadcast(node) ? "Cast" : node.op,
        .sources = {},
        .dtype = node.outputs[0].dtype,
        .immediate = 0,
        .alpha = node.attributes.GetOr<double>("alpha", 0),
        .approximate = node.attributes.GetOr("approximate", false)};
    for (const NodeOutput& input : node.inputs) {
      if (const auto result = results.find(input.node);
          result != results.end()) {
        step.sources.push_back(result->second);
      } else if (IsImmediate(node, input)) {
        step.immediate = graph_.nodes[input.node]
                             .attributes.GetOr<Tensor>("value", Tensor())
                             .ElementAsDouble(0);
        step.sources.push_back(ElementwiseProgram::kImmediate);
      } else {
        step.sources.push_back(inputs.at({input.node, input.output}));
      }
    }
    return step;
  }

  Graph& graph_;
  const OpRegistry& ops_;
  const absl::FunctionRef<bool(const KernelSpec&)> is_supported_;
  std::vector<std::vector<int>> readers_;  // By node.
  // True for results and for nodes that other nodes wait for.
  std::vector<bool> is_fixed_;
  std::vector<bool> is_constant_;
  std::vector<bool> is_absorbed_;
};

}  // namespace

void FuseElementwise(Graph* typed_graph, const OpRegistry& ops,
                     absl::FunctionRef<bool(const KernelSpec&)> is_supported) {
  ElementwiseFusion(typed_graph, ops, is_supported).Run();
}

}  // namespace muster
