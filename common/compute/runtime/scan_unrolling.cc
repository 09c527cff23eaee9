#include "common/compute/runtime/scan_unrolling.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/runtime/graph_rewrites.h"
#include "common/compute/runtime/typed_graph.h"

namespace muster {
namespace {

using Outputs = std::vector<NodeOutput>;

bool HasReplicaOps(const Graph& graph, const OpRegistry& ops) {
  return std::any_of(
      graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
        return ops.FindOrPlain(node.op).reads == OpReads::kReplicas ||
               std::any_of(node.subgraphs.begin(), node.subgraphs.end(),
                           [&](const auto& subgraph) {
                             return HasReplicaOps(*subgraph, ops);
                           });
      });
}

// Appends the iterations of one Scan to a graph.
class Unrolling {
 public:
  // `inputs` are the inputs of `scan` as outputs in `to`.
  Unrolling(const Node& scan, const Graph& body, Outputs inputs, Graph* to)
      : scan_(scan),
        body_(body),
        inputs_(std::move(inputs)),
        carry_count_(scan.attributes.GetOr<int64_t>("carry_count", 0)),
        input_count_(scan.attributes.GetOr<int64_t>("input_count", 0)),
        to_(*to),
        values_(body.nodes.size()),
        positions_(body.nodes.size()),
        changes_(body.nodes.size(), false) {
    FindChanges();
  }

  // Appends `length` iterations. Returns the values that replace the outputs of
  // the Scan.
  Outputs Append(int64_t length) {
    const bool is_reverse = scan_.attributes.GetOr("reverse", false);
    const bool keeps_steps = scan_.attributes.GetOr("keep_steps", false);
    for (int64_t i = 0; i < input_count_; ++i) {
      rows_.push_back(AppendUnstack(carry_count_ + i, length));
    }
    Outputs carry(inputs_.begin(), inputs_.begin() + carry_count_);
    const size_t row_count = body_.results.size() - carry_count_;
    // For each stacked output, one value for each iteration: rows, and the
    // carries before the iteration.
    std::vector<Outputs> stacks(row_count + (keeps_steps ? carry_count_ : 0),
                                Outputs(length));
    for (int64_t i = 0; i < length; ++i) {
      const int64_t row = is_reverse ? length - 1 - i : i;
      for (size_t k = row_count; k < stacks.size(); ++k) {
        stacks[k][row] = carry[k - row_count];
      }
      const Outputs results = AppendIteration(row, /*is_first=*/i == 0, carry);
      carry.assign(results.begin(), results.begin() + carry_count_);
      for (size_t k = 0; k < row_count; ++k) {
        stacks[k][row] = results[carry_count_ + k];
      }
    }
    Outputs outputs = std::move(carry);
    for (Outputs& rows : stacks) {
      const TensorType& type = scan_.outputs[outputs.size()];
      outputs.push_back(
          AppendNode({.op = "Stack",
                      .name = absl::StrCat("stack_", outputs.size()),
                      .inputs = std::move(rows),
                      .attributes = {{"axis", int64_t{0}}},
                      .outputs = {type}})[0]);
    }
    return outputs;
  }

 private:
  // Finds the nodes of the body that depend on the carry or on rows.
  void FindChanges() {
    for (int64_t i = 0; i < carry_count_ + input_count_; ++i) {
      changes_[body_.parameters[i]] = true;
    }
    for (size_t i = 0; i < body_.nodes.size(); ++i) {
      const Node& node = body_.nodes[i];
      for (const NodeOutput& input : node.inputs) {
        if (changes_[input.node]) changes_[i] = true;
      }
      for (const int control : node.control_inputs) {
        if (changes_[control]) changes_[i] = true;
      }
    }
  }

  Outputs AppendIteration(int64_t row, bool is_first, const Outputs& carry) {
    for (int64_t i = 0; i < static_cast<int64_t>(body_.parameters.size());
         ++i) {
      const int parameter = body_.parameters[i];
      if (i < carry_count_) {
        values_[parameter] = {carry[i]};
      } else if (i < carry_count_ + input_count_) {
        values_[parameter] = {rows_[i - carry_count_][row]};
      } else {
        values_[parameter] = {inputs_[i]};
      }
      positions_[parameter] = values_[parameter][0].node;
    }
    for (size_t i = 0; i < body_.nodes.size(); ++i) {
      const Node& node = body_.nodes[i];
      if (node.op == kParameterOp || (!is_first && !changes_[i])) continue;
      values_[i] = AppendCopy(node, row);
      positions_[i] = static_cast<int>(to_.nodes.size()) - 1;
    }
    Outputs results;
    for (const NodeOutput& result : body_.results) {
      results.push_back(ValueOf(result));
    }
    return results;
  }

  // Appends a node with all rows of input `i`.
  Outputs AppendUnstack(int64_t i, int64_t length) {
    const TensorType& row = body_.nodes[body_.parameters[i]].outputs[0];
    return AppendNode({.op = "Unstack",
                       .name = absl::StrCat("unstack_", i),
                       .inputs = {inputs_[i]},
                       .attributes = {{"count", length}, {"axis", int64_t{0}}},
                       .outputs = std::vector<TensorType>(length, row)});
  }

  Outputs AppendCopy(const Node& node, int64_t row) {
    Node copy = node;
    copy.name = absl::StrCat(row, "/", node.name);
    for (NodeOutput& input : copy.inputs) input = ValueOf(input);
    for (int& control : copy.control_inputs) control = positions_[control];
    return AppendNode(std::move(copy));
  }

  Outputs AppendNode(Node node) {
    node.name = absl::StrCat(scan_.name, "/", node.name);
    Outputs outputs;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      outputs.push_back(
          {static_cast<int>(to_.nodes.size()), static_cast<int>(k)});
    }
    to_.nodes.push_back(std::move(node));
    return outputs;
  }

  NodeOutput ValueOf(NodeOutput output) const {
    return values_[output.node][output.output];
  }

  const Node& scan_;
  const Graph& body_;
  const Outputs inputs_;
  const int64_t carry_count_;
  const int64_t input_count_;
  Graph& to_;
  std::vector<Outputs> rows_;  // By input and row.
  // For each node of the body: its last copy in `to_`, and whether each
  // iteration has a separate copy.
  std::vector<Outputs> values_;
  std::vector<int> positions_;
  std::vector<bool> changes_;
};

// Returns the body of a Scan with the types that the Scan gives it, and with
// inner Scans unrolled. Returns nothing if the Scan must stay.
std::optional<Graph> BodyOf(const Node& scan, const Graph& graph,
                            const OpRegistry& ops, int64_t nodes_max) {
  if (HasReplicaOps(*scan.subgraphs[0], ops)) return std::nullopt;
  std::vector<TensorType> inputs;
  for (const NodeOutput& input : scan.inputs) {
    inputs.push_back(graph.TypeOf(input));
  }
  const auto parameters =
      ops.FindOrPlain(scan.op).subgraph_rule({.inputs = inputs,
                                              .attributes = scan.attributes,
                                              .subgraphs = scan.subgraphs});
  if (!parameters.ok()) return std::nullopt;
  auto body = WithTypes(DropDeadNodes(*scan.subgraphs[0], ops), ops,
                        {*parameters}, /*replica=*/0);
  if (!body.ok()) return std::nullopt;
  BypassNoOps(&*body, ops);
  DropTypeInputs(&*body, ops);
  DropUnreadSteps(&*body, ops);
  UnrollScans(&*body, ops, nodes_max);
  return *std::move(body);
}

int64_t LengthOf(const Node& scan, const Graph& graph) {
  if (scan.attributes.GetOr<int64_t>("input_count", 0) == 0) {
    return scan.attributes.GetOr<int64_t>("length", 0);
  }
  const int64_t first_input = scan.attributes.GetOr<int64_t>("carry_count", 0);
  return graph.TypeOf(scan.inputs[first_input]).shape.dim(0);
}

}  // namespace

void UnrollScans(Graph* typed_graph, const OpRegistry& ops, int64_t nodes_max) {
  const Graph& from = *typed_graph;
  const auto is_scan = [](const Node& node) { return node.op == "Scan"; };
  if (std::none_of(from.nodes.begin(), from.nodes.end(), is_scan)) return;
  Graph to;
  to.name = from.name;
  // For each node of `from`: its outputs in `to`, and the node in `to` that
  // completes it.
  std::vector<Outputs> outputs(from.nodes.size());
  std::vector<int> positions(from.nodes.size());
  const auto moved = [&](NodeOutput output) {
    return outputs[output.node][output.output];
  };
  int64_t rest = nodes_max - static_cast<int64_t>(from.nodes.size());
  for (size_t i = 0; i < from.nodes.size(); ++i) {
    Node node = from.nodes[i];
    const int64_t length = is_scan(node) ? LengthOf(node, from) : 0;
    std::optional<Graph> body;
    if (length > 0) body = BodyOf(node, from, ops, rest / length);
    for (NodeOutput& input : node.inputs) input = moved(input);
    if (body.has_value()) {
      const auto nodes = static_cast<int64_t>(body->nodes.size());
      if (nodes <= rest / length) {
        rest -= nodes * length;
        outputs[i] = Unrolling(node, *body, node.inputs, &to).Append(length);
        positions[i] = static_cast<int>(to.nodes.size()) - 1;
        continue;
      }
    }
    for (int& control : node.control_inputs) control = positions[control];
    positions[i] = static_cast<int>(to.nodes.size());
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      outputs[i].push_back({positions[i], static_cast<int>(k)});
    }
    to.nodes.push_back(std::move(node));
  }
  for (const int parameter : from.parameters) {
    to.parameters.push_back(positions[parameter]);
  }
  for (const NodeOutput& result : from.results) {
    to.results.push_back(moved(result));
  }
  *typed_graph = std::move(to);
}

}  // namespace muster
