#include "common/compute/runtime/attention_fusion.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/compute/kernels/attention.h"
#include "common/compute/runtime/graph_rewrites.h"
#include "common/compute/runtime/typed_graph.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

// The nodes of one attention, by position.
struct Attention {
  NodeOutput q, k, v;  // As the new ops read them.
  double scale = 1;
  // As the products read them: with axes in the order of products, and the
  // query multiplied by the scale.
  NodeOutput q_operand, k_operand, v_operand;
  int softmax = -1;
  int p = -1;  // The softmax, or the Cast of it to the type of the products.
  std::vector<int> p_readers;  // All that read either, except that Cast.
  int output = -1;             // The node whose place the new op takes.
};

// The nodes of its gradient.
struct AttentionGrad {
  NodeOutput d_o;  // As the new op reads it.
  int first = -1;  // The first node that reads d_o.
  int dq = -1, dk = -1, dv = -1;
};

class AttentionFusion {
 public:
  AttentionFusion(Graph* graph,
                  absl::FunctionRef<bool(const KernelSpec&)> is_supported)
      : graph_(*graph),
        is_supported_(is_supported),
        readers_(graph->nodes.size()) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const NodeOutput& input : graph_.nodes[i].inputs) {
        readers_[input.node].push_back(static_cast<int>(i));
      }
    }
    for (const NodeOutput& result : graph_.results) {
      readers_[result.node].push_back(kResult);
    }
  }

  // Returns whether there was attention to fuse.
  bool Run() {
    bool has_fused = false;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].op != "Softmax") continue;
      const std::optional<Attention> found = Match(static_cast<int>(i));
      if (found.has_value() && Fuse(*found)) has_fused = true;
    }
    return has_fused;
  }

 private:
  // The reader of a result of the graph.
  static constexpr int kResult = -1;

  const Node& NodeOf(NodeOutput output) const {
    return graph_.nodes[output.node];
  }

  // The only reader of a node; kResult if there are several, or none.
  int OnlyReader(int node) const {
    return readers_[node].size() == 1 ? readers_[node][0] : kResult;
  }

  bool IsMatMul(int node, bool transpose_a, bool transpose_b) const {
    if (node == kResult) return false;
    const Node& one = graph_.nodes[node];
    return one.op == "MatMul" &&
           one.attributes.GetOr("transpose_a", false) == transpose_a &&
           one.attributes.GetOr("transpose_b", false) == transpose_b;
  }

  bool IsSwapOfHeadsAndTime(int node) const {
    return node != kResult && graph_.nodes[node].op == "Transpose" &&
           graph_.nodes[node].attributes.GetOr<std::vector<int64_t>>(
               "permutation", {}) == std::vector<int64_t>{0, 2, 1, 3};
  }

  int RankOf(NodeOutput output) const {
    return graph_.TypeOf(output).shape.rank();
  }

  // The operand of a product as the new ops read it.
  std::optional<NodeOutput> WithoutSwap(NodeOutput operand) const {
    if (RankOf(operand) == 3) return operand;
    if (!IsSwapOfHeadsAndTime(operand.node)) return std::nullopt;
    return NodeOf(operand).inputs[0];
  }

  // The node that gives the result of product `node` as the new ops write it;
  // kResult if there is none.
  int BehindSwap(int node) const {
    if (RankOf({node, 0}) == 3) return node;
    const int reader = OnlyReader(node);
    return IsSwapOfHeadsAndTime(reader) ? reader : kResult;
  }

  // A value and the constant by which it is multiplied.
  struct Scaled {
    NodeOutput value;
    double scale = 1;
  };

  std::optional<Scaled> MatchScaling(NodeOutput product) const {
    const Node& node = NodeOf(product);
    if (node.op != "Mul") return std::nullopt;
    for (const int i : {0, 1}) {
      const Node& scale = NodeOf(node.inputs[i]);
      if (scale.op == kConstantOp &&
          scale.outputs[0].shape.element_count() == 1 &&
          graph_.TypeOf(node.inputs[1 - i]) == node.outputs[0]) {
        return Scaled{node.inputs[1 - i],
                      scale.attributes.GetOr<Tensor>("value", Tensor())
                          .ElementAsDouble(0)};
      }
    }
    return std::nullopt;
  }

  bool IsCast(int node) const {
    return node != kResult && graph_.nodes[node].op == "Cast";
  }

  // The node that gives `input`, or that gives what a Cast makes it from. What
  // is between it and `reader` has no other reader; kResult if it has.
  int BeforeCast(NodeOutput input, int reader) const {
    if (OnlyReader(input.node) != reader) return kResult;
    if (!IsCast(input.node)) return input.node;
    const int before = NodeOf(input).inputs[0].node;
    return OnlyReader(before) == input.node ? before : kResult;
  }

  // Finds p and what reads it.
  void FindProbabilities(Attention* attention) const {
    attention->p = attention->softmax;
    for (const int reader : readers_[attention->softmax]) {
      if (IsCast(reader) && attention->p == attention->softmax) {
        attention->p = reader;
      } else {
        attention->p_readers.push_back(reader);
      }
    }
    if (attention->p == attention->softmax) return;
    const std::vector<int>& readers = readers_[attention->p];
    attention->p_readers.insert(attention->p_readers.end(), readers.begin(),
                                readers.end());
  }

  std::optional<Attention> Match(int softmax) const {
    const int scores = BeforeCast(graph_.nodes[softmax].inputs[0], softmax);
    if (!IsMatMul(scores, false, true)) return std::nullopt;
    Attention found = {.q_operand = graph_.nodes[scores].inputs[0],
                       .k_operand = graph_.nodes[scores].inputs[1],
                       .softmax = softmax};
    FindProbabilities(&found);
    // The others that read p are those of the gradient.
    const auto product = std::find_if(
        found.p_readers.begin(), found.p_readers.end(),
        [&](int reader) { return IsMatMul(reader, false, false); });
    if (product == found.p_readers.end() ||
        graph_.nodes[*product].inputs[0] != NodeOutput{found.p, 0}) {
      return std::nullopt;
    }
    found.v_operand = graph_.nodes[*product].inputs[1];
    found.output = BehindSwap(*product);
    const Scaled query =
        MatchScaling(found.q_operand).value_or(Scaled{found.q_operand, 1});
    const auto q = WithoutSwap(query.value);
    const auto k = WithoutSwap(found.k_operand);
    const auto v = WithoutSwap(found.v_operand);
    if (found.output == kResult || !q || !k || !v) return std::nullopt;
    found.q = *q;
    found.k = *k;
    found.v = *v;
    found.scale = query.scale;
    return found;
  }

  // Absent if the nodes that read p behind the attention are not the whole
  // gradient.
  std::optional<AttentionGrad> MatchGrad(const Attention& attention) const {
    int softmax_grad = kResult;
    int dv = kResult;
    for (const int reader : attention.p_readers) {
      if (reader == kResult) return std::nullopt;
      const Node& node = graph_.nodes[reader];
      if (node.op == "SoftmaxGrad" &&
          node.inputs[1] == NodeOutput{attention.softmax, 0}) {
        softmax_grad = reader;
      } else if (IsMatMul(reader, true, false) &&
                 node.inputs[0] == NodeOutput{attention.p, 0}) {
        dv = reader;
      }
    }
    if (softmax_grad == kResult || dv == kResult ||
        attention.p_readers.size() != 3) {
      return std::nullopt;
    }
    const int dp =
        BeforeCast(graph_.nodes[softmax_grad].inputs[0], softmax_grad);
    const NodeOutput d_o_operand = graph_.nodes[dv].inputs[1];
    if (!IsMatMul(dp, false, true) ||
        graph_.nodes[dp].inputs !=
            std::vector<NodeOutput>{d_o_operand, attention.v_operand}) {
      return std::nullopt;
    }
    const int narrowed = OnlyReader(softmax_grad);
    const int ds = IsCast(narrowed) ? narrowed : softmax_grad;
    const std::optional<NodeOutput> d_o = WithoutSwap(d_o_operand);
    AttentionGrad found = {.d_o = d_o.value_or(NodeOutput()),
                           .first = std::min(dp, dv),
                           .dv = BehindSwap(dv)};
    for (const int reader : readers_[ds]) {
      if (IsMatMul(reader, false, false) &&
          graph_.nodes[reader].inputs ==
              std::vector<NodeOutput>{{ds, 0}, attention.k_operand}) {
        found.dq = BehindScalingAndSwap(reader, attention);
      } else if (IsMatMul(reader, true, false) &&
                 graph_.nodes[reader].inputs ==
                     std::vector<NodeOutput>{{ds, 0}, attention.q_operand}) {
        found.dk = BehindSwap(reader);
      }
    }
    if (!d_o || readers_[ds].size() != 2 || found.dq < 0 || found.dk < 0 ||
        found.dv < 0 || attention.output > found.first ||
        graph_.TypeOf(*d_o) != graph_.nodes[attention.output].outputs[0]) {
      return std::nullopt;
    }
    return found;
  }

  // The node that gives the gradient of the query, from the product that gives
  // that of the multiplied query.
  int BehindScalingAndSwap(int product, const Attention& attention) const {
    if (!MatchScaling(attention.q_operand)) return BehindSwap(product);
    const int scaling = OnlyReader(product);
    if (scaling == kResult) return kResult;
    const std::optional<Scaled> scaled = MatchScaling({scaling, 0});
    if (!scaled || scaled->value != NodeOutput{product, 0} ||
        scaled->scale != attention.scale) {
      return kResult;
    }
    return BehindSwap(scaling);
  }

  Node MakeForward(const Attention& attention,
                   const AttentionGeometry& geometry) const {
    const Node& output = graph_.nodes[attention.output];
    return {.op = std::string(kFusedAttentionOp),
            .name = output.name,
            .inputs = {attention.q, attention.k, attention.v},
            .control_inputs = output.control_inputs,
            .attributes = {{std::string(kAttentionScaleAttribute),
                            attention.scale}},
            .outputs = {output.outputs[0],
                        {DType::kFloat32, geometry.StatisticsShape()}},
            .subgraphs = {}};
  }

  Node MakeGrad(const Attention& attention, const AttentionGrad& grad) const {
    const Node& first = graph_.nodes[grad.first];
    return {.op = std::string(kFusedAttentionGradOp),
            .name = first.name,
            .inputs = {grad.d_o,
                       attention.q,
                       attention.k,
                       attention.v,
                       {attention.output, 0},
                       {attention.output, 1}},
            .control_inputs = first.control_inputs,
            .attributes = {{std::string(kAttentionScaleAttribute),
                            attention.scale}},
            .outputs = {graph_.TypeOf(attention.q), graph_.TypeOf(attention.k),
                        graph_.TypeOf(attention.v)},
            .subgraphs = {}};
  }

  // Returns whether the attention has become new ops.
  bool Fuse(const Attention& attention) {
    const auto geometry = AttentionGeometry::Of(graph_.TypeOf(attention.q),
                                                graph_.TypeOf(attention.k),
                                                graph_.TypeOf(attention.v));
    if (!geometry.ok()) return false;
    Node forward = MakeForward(attention, *geometry);
    if (!is_supported_(SpecOf(graph_, forward))) return false;
    if (attention.p_readers.size() == 1) {
      graph_.nodes[attention.output] = std::move(forward);
      return true;
    }
    const std::optional<AttentionGrad> grad = MatchGrad(attention);
    if (!grad.has_value()) return false;
    Node old_output =
        std::exchange(graph_.nodes[attention.output], std::move(forward));
    Node backward = MakeGrad(attention, *grad);
    if (!is_supported_(SpecOf(graph_, backward))) {
      graph_.nodes[attention.output] = std::move(old_output);
      return false;
    }
    for (Node& node : graph_.nodes) {
      for (NodeOutput& input : node.inputs) Redirect(*grad, &input);
    }
    for (NodeOutput& result : graph_.results) Redirect(*grad, &result);
    graph_.nodes[grad->first] = std::move(backward);
    return true;
  }

  // Lets a reader of a gradient read that of the new op.
  static void Redirect(const AttentionGrad& grad, NodeOutput* read) {
    const int gradients[] = {grad.dq, grad.dk, grad.dv};
    const auto found =
        std::find(std::begin(gradients), std::end(gradients), read->node);
    if (found == std::end(gradients)) return;
    *read = {grad.first, static_cast<int>(found - std::begin(gradients))};
  }

  Graph& graph_;
  const absl::FunctionRef<bool(const KernelSpec&)> is_supported_;
  std::vector<std::vector<int>> readers_;  // By node, once for each read.
};

}  // namespace

void FuseAttention(Graph* typed_graph, const OpRegistry& ops,
                   absl::FunctionRef<bool(const KernelSpec&)> is_supported) {
  // A dead node must not count as a reader.
  *typed_graph = DropDeadNodes(*typed_graph, ops);
  if (AttentionFusion(typed_graph, is_supported).Run()) {
    *typed_graph = DropDeadNodes(*typed_graph, ops);
  }
}

}  // namespace muster
