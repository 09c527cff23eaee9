#include "common/compute/runtime/graph_rewrites.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/compute/runtime/variable_uses.h"

namespace muster {
namespace {

// Returns the nodes of `graph` that `order` names, in that order. Edges from
// nodes that are left out must be control edges; they are removed.
Graph WithNodes(const Graph& graph, const std::vector<int>& order) {
  std::vector<int> new_index(graph.nodes.size(), -1);
  for (size_t i = 0; i < order.size(); ++i) {
    new_index[order[i]] = static_cast<int>(i);
  }
  Graph result;
  result.name = graph.name;
  for (const int old : order) {
    Node node = graph.nodes[old];
    for (NodeOutput& input : node.inputs) input.node = new_index[input.node];
    for (int& control : node.control_inputs) control = new_index[control];
    std::erase(node.control_inputs, -1);
    result.nodes.push_back(std::move(node));
  }
  for (const int parameter : graph.parameters) {
    result.parameters.push_back(new_index[parameter]);
  }
  for (const NodeOutput& output : graph.results) {
    result.results.push_back({new_index[output.node], output.output});
  }
  return result;
}

// Appends `node` to `order`, after the nodes that it reads. The recursion is
// shallow: only the nodes that a rewrite has appended are not in order.
void AppendWithInputs(const Graph& graph, int node,
                      std::vector<bool>* is_placed, std::vector<int>* order) {
  if ((*is_placed)[node]) return;
  (*is_placed)[node] = true;
  const Node& placed = graph.nodes[node];
  for (const NodeOutput& input : placed.inputs) {
    AppendWithInputs(graph, input.node, is_placed, order);
  }
  for (const int control : placed.control_inputs) {
    AppendWithInputs(graph, control, is_placed, order);
  }
  order->push_back(node);
}

// True if the node passes a value to the session, which should happen as early
// as possible.
bool GoesToSession(const OpSchema& schema) {
  return schema.effect == OpEffect::kUpdateVariable ||
         schema.effect == OpEffect::kDescribeStep;
}

// Returns for each node the last node that uses its value or a view of it; the
// end of the graph for results.
std::vector<int> FindLastUses(const Graph& graph, const OpRegistry& ops) {
  const int node_count = static_cast<int>(graph.nodes.size());
  std::vector<int> last_uses(node_count);
  std::iota(last_uses.begin(), last_uses.end(), 0);
  for (const NodeOutput& result : graph.results) {
    last_uses[result.node] = node_count;
  }
  for (int i = node_count - 1; i >= 0; --i) {
    const bool is_view = ops.FindOrPlain(graph.nodes[i].op).is_view;
    const int use = is_view ? last_uses[i] : i;
    for (const NodeOutput& input : graph.nodes[i].inputs) {
      last_uses[input.node] = std::max(last_uses[input.node], use);
    }
  }
  return last_uses;
}

bool IsNoOp(const Graph& graph, const Node& node, const OpRegistry& ops) {
  const OpSchema& schema = ops.FindOrPlain(node.op);
  return (schema.is_view || schema.keeps_unchanged_type) &&
         node.outputs[0] == graph.TypeOf(node.inputs[0]);
}

// Larger constants cost memory and save little.
constexpr int64_t kFoldedElementsMax = 1024;

void MakeConstant(double value, Node* node) {
  const TensorType& type = node->outputs[0];
  node->op = std::string(kConstantOp);
  node->inputs.clear();
  node->attributes = {{"value", Tensor::Full(type.dtype, type.shape, value)}};
}

double CountOf(const Shape& shape, const std::vector<int64_t>& axes) {
  int64_t count = 1;
  for (const int64_t axis : axes) {
    count *= shape.dim(static_cast<int>(axis < 0 ? axis + shape.rank() : axis));
  }
  return static_cast<double>(count);
}

void MakePad(const Shape& before, Node* node) {
  const auto begin = node->attributes.GetOr<std::vector<int64_t>>("begin", {});
  std::vector<int64_t> paddings;
  for (int axis = 0; axis < before.rank(); ++axis) {
    paddings.push_back(begin[axis]);
    paddings.push_back(node->outputs[0].shape.dim(axis) - begin[axis] -
                       before.dim(axis));
  }
  node->op = "Pad";
  node->inputs.resize(1);
  node->attributes = {{"paddings", std::move(paddings)}, {"value", 0.0}};
}

}  // namespace

void FoldTypes(Graph* typed_graph) {
  for (Node& node : typed_graph->nodes) {
    if (node.inputs.empty()) continue;
    const Shape& shape = typed_graph->TypeOf(node.inputs[0]).shape;
    const bool is_small =
        node.outputs.size() == 1 &&
        node.outputs[0].shape.element_count() <= kFoldedElementsMax;
    if (node.op == "CountAlong") {
      MakeConstant(CountOf(shape, node.attributes.GetOr<std::vector<int64_t>>(
                                      "axes", {})),
                   &node);
    } else if (node.op == "OnesLike" && is_small) {
      MakeConstant(1, &node);
    } else if (node.op == "ZerosLike" && is_small) {
      MakeConstant(0, &node);
    } else if (node.op == "PadLike") {
      MakePad(shape, &node);
    }
  }
}

void SortNodes(Graph* graph) {
  std::vector<bool> is_placed(graph->nodes.size());
  std::vector<int> order;
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    AppendWithInputs(*graph, static_cast<int>(i), &is_placed, &order);
  }
  *graph = WithNodes(*graph, order);
}

Graph DropDeadNodes(const Graph& graph, const OpRegistry& ops) {
  std::vector<bool> is_live(graph.nodes.size(), false);
  for (const NodeOutput& result : graph.results) is_live[result.node] = true;
  for (const int parameter : graph.parameters) is_live[parameter] = true;
  std::vector<int> order;
  for (int i = static_cast<int>(graph.nodes.size()) - 1; i >= 0; --i) {
    const Node& node = graph.nodes[i];
    const OpEffect effect = ops.FindOrPlain(node.op).effect;
    if (effect != OpEffect::kNone && effect != OpEffect::kReadVariable) {
      is_live[i] = true;
    }
    if (!is_live[i]) continue;
    order.push_back(i);
    for (const NodeOutput& input : node.inputs) is_live[input.node] = true;
  }
  std::reverse(order.begin(), order.end());
  return WithNodes(graph, order);
}

Graph ApplyUpdatesEarly(const Graph& graph, const OpRegistry& ops) {
  const std::vector<int> last_uses = FindLastUses(graph, ops);
  std::map<std::string, int> read_until;  // By variable.
  std::vector<int> ready(graph.nodes.size());
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const Node& node = graph.nodes[i];
    ready[i] = i;
    if (node.op == kReadVariableOp) {
      int& until = read_until.try_emplace(VariableOf(node), 0).first->second;
      until = std::max(until, last_uses[i]);
    }
    if (!GoesToSession(ops.FindOrPlain(node.op))) continue;
    int earliest = 0;
    for (const NodeOutput& input : node.inputs) {
      earliest = std::max(earliest, ready[input.node]);
    }
    for (const int control : node.control_inputs) {
      earliest = std::max(earliest, ready[control]);
    }
    const auto until = read_until.find(VariableOf(node));
    if (until != read_until.end()) {
      earliest = std::max(earliest, until->second);
    }
    ready[i] = std::min(earliest, i);
  }
  std::vector<int> order(graph.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::pair(ready[a], a) < std::pair(ready[b], b);
  });
  return WithNodes(graph, order);
}

void BypassNoOps(Graph* typed_graph, const OpRegistry& ops) {
  // For each node with one output: the output that its readers may read
  // instead.
  std::vector<NodeOutput> stand_ins(typed_graph->nodes.size());
  const auto redirect = [&](NodeOutput& output) {
    const NodeOutput bypassed_input = stand_ins[output.node];
    if (bypassed_input.node >= 0) output = bypassed_input;
  };
  for (size_t i = 0; i < typed_graph->nodes.size(); ++i) {
    Node& node = typed_graph->nodes[i];
    for (NodeOutput& input : node.inputs) redirect(input);
    if (IsNoOp(*typed_graph, node, ops)) {
      stand_ins[i] = node.inputs[0];
    } else if (node.op == "ReshapeLike") {
      const auto dims = node.outputs[0].shape.dims();
      node.op = "Reshape";
      node.inputs.resize(1);
      node.attributes = {
          {"shape", std::vector<int64_t>(dims.begin(), dims.end())}};
    }
  }
  for (NodeOutput& result : typed_graph->results) redirect(result);
}

void DropUnreadSteps(Graph* typed_graph, const OpRegistry& ops) {
  // For each node: the number of outputs up to the last one that is read.
  std::vector<int> read_counts(typed_graph->nodes.size(), 0);
  const auto note_read = [&](NodeOutput read) {
    int& count = read_counts[read.node];
    count = std::max(count, read.output + 1);
  };
  for (const NodeOutput& result : typed_graph->results) note_read(result);
  for (const Node& node : typed_graph->nodes) {
    for (const NodeOutput& input : node.inputs) note_read(input);
  }
  for (size_t i = 0; i < typed_graph->nodes.size(); ++i) {
    Node& node = typed_graph->nodes[i];
    if (!node.attributes.GetOr("keep_steps", false)) continue;
    Attributes attributes = node.attributes;
    attributes.Set("keep_steps", false);
    std::vector<TensorType> inputs;
    for (const NodeOutput& input : node.inputs) {
      inputs.push_back(typed_graph->TypeOf(input));
    }
    const auto types = ops.InferTypes(node.op, node.name,
                                      {.inputs = inputs,
                                       .attributes = attributes,
                                       .subgraphs = node.subgraphs});
    if (!types.ok() || read_counts[i] > static_cast<int>(types->size()) ||
        types->size() == node.outputs.size()) {
      continue;
    }
    node.attributes = std::move(attributes);
    node.outputs = *types;
  }
}

void DropTypeInputs(Graph* typed_graph, const OpRegistry& ops) {
  for (Node& node : typed_graph->nodes) {
    const int type_input = ops.FindOrPlain(node.op).type_input;
    if (type_input != OpSchema::kNoInput) {
      node.inputs.resize(type_input);
    } else if (node.op == "BroadcastLike") {
      const auto dims = node.outputs[0].shape.dims();
      node.op = "BroadcastTo";
      node.inputs.resize(1);
      node.attributes = {
          {"shape", std::vector<int64_t>(dims.begin(), dims.end())}};
    }
  }
}

}  // namespace muster
