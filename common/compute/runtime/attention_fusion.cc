#include "common/compute/runtime/attention_fusion.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/kernels/attention.h"
#include "common/compute/runtime/graph_rewrites.h"
#include "common/compute/runtime/typed_graph.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

// The nodes of one attention, by position.
struct Attention {
  NodeOutput q, k, v;  // As the new ops read them.
  double scale = 1;
  // As the products read them: with swapped axes, and the query already scaled.
  NodeOutput q_operand, k_operand, v_operand;
  int mask = -1;  // The Select that masks the scores; -1 if there is none.
  int softmax = -1;
  int p = -1;  // The softmax, or the Cast of its result.
  // All readers of p and of the softmax, except that Cast.
  std::vector<int> p_readers;
  int output = -1;  // The node that the new op replaces.
};

// The nodes of the gradient of one attention.
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

  // Returns true if any attention has been fused.
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
  // A Select with this fill or less is a mask.
  static constexpr double kMaskFillMax = -1e4;
  // The bias of a masked score. Its exponential is 0 compared with those of
  // unmasked scores. If all scores are masked, float32 can still represent the
  // logarithm of the sum of exponentials.
  static constexpr double kMaskedScore = -3e4;
  // The reader index for a result of the graph.
  static constexpr int kResult = -1;

  const Node& NodeOf(NodeOutput output) const {
    return graph_.nodes[output.node];
  }

  // Returns the only reader of a node; kResult if there are several or none.
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

  // Returns the operand of a product as the new ops read it: without the
  // Transpose.
  std::optional<NodeOutput> WithoutSwap(NodeOutput operand) const {
    if (RankOf(operand) == 3) return operand;
    if (!IsSwapOfHeadsAndTime(operand.node)) return std::nullopt;
    return NodeOf(operand).inputs[0];
  }

  // Returns the node with the result of product `node` as the new ops write it:
  // behind the Transpose. kResult if there is none.
  int AfterTranspose(int node) const {
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
      const std::optional<double> scale = ConstantOf(node.inputs[i]);
      if (scale.has_value() &&
          graph_.TypeOf(node.inputs[1 - i]) == node.outputs[0]) {
        return Scaled{node.inputs[1 - i], *scale};
      }
    }
    return std::nullopt;
  }

  // Returns the value of a constant with one element.
  std::optional<double> ConstantOf(NodeOutput value) const {
    const Node& node = NodeOf(value);
    if (node.op != kConstantOp || node.outputs[0].shape.element_count() != 1) {
      return std::nullopt;
    }
    return node.attributes.GetOr<Tensor>("value", Tensor()).ElementAsDouble(0);
  }

  bool IsCast(int node) const {
    return node != kResult && graph_.nodes[node].op == "Cast";
  }

  // Returns the node that computes `input`, or the operand of the Cast that
  // computes it. Returns kResult if a node on the way has other readers than
  // the next one and `reader`.
  int WithoutCast(NodeOutput input, int reader) const {
    if (OnlyReader(input.node) != reader) return kResult;
    if (!IsCast(input.node)) return input.node;
    const int before = NodeOf(input).inputs[0].node;
    return OnlyReader(before) == input.node ? before : kResult;
  }

  // Finds p and its readers.
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

  // True if `node` selects its first choice, without broadcasting it, where a
  // mask is true, and a constant of at most `greatest` where it is false.
  bool IsMasking(int node, double greatest) const {
    if (node == kResult || graph_.nodes[node].op != "Select") return false;
    const Node& select = graph_.nodes[node];
    const std::optional<double> fill = ConstantOf(select.inputs[2]);
    return fill.has_value() && *fill <= greatest &&
           graph_.TypeOf(select.inputs[1]) == select.outputs[0];
  }

  std::optional<Attention> Match(int softmax) const {
    int scores = WithoutCast(graph_.nodes[softmax].inputs[0], softmax);
    int mask = -1;
    if (IsMasking(scores, kMaskFillMax)) {
      mask = scores;
      scores = WithoutCast(graph_.nodes[mask].inputs[1], mask);
    }
    if (!IsMatMul(scores, false, true)) return std::nullopt;
    Attention found = {.q_operand = graph_.nodes[scores].inputs[0],
                       .k_operand = graph_.nodes[scores].inputs[1],
                       .mask = mask,
                       .softmax = softmax};
    FindProbabilities(&found);
    // The other readers of p belong to the gradient.
    const auto product = std::find_if(
        found.p_readers.begin(), found.p_readers.end(),
        [&](int reader) { return IsMatMul(reader, false, false); });
    if (product == found.p_readers.end() ||
        graph_.nodes[*product].inputs[0] != NodeOutput{found.p, 0}) {
      return std::nullopt;
    }
    found.v_operand = graph_.nodes[*product].inputs[1];
    found.output = AfterTranspose(*product);
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

  // Returns nothing if the readers of p after the attention are not exactly the
  // whole gradient.
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
        WithoutCast(graph_.nodes[softmax_grad].inputs[0], softmax_grad);
    const NodeOutput d_o_operand = graph_.nodes[dv].inputs[1];
    if (!IsMatMul(dp, false, true) ||
        graph_.nodes[dp].inputs !=
            std::vector<NodeOutput>{d_o_operand, attention.v_operand}) {
      return std::nullopt;
    }
    const int ds = AfterMask(softmax_grad, attention);
    if (ds == kResult) return std::nullopt;
    const std::optional<NodeOutput> d_o = WithoutSwap(d_o_operand);
    AttentionGrad found = {.d_o = d_o.value_or(NodeOutput()),
                           .first = std::min(dp, dv),
                           .dv = AfterTranspose(dv)};
    for (const int reader : readers_[ds]) {
      if (IsMatMul(reader, false, false) &&
          graph_.nodes[reader].inputs ==
              std::vector<NodeOutput>{{ds, 0}, attention.k_operand}) {
        found.dq = AfterScalingAndTranspose(reader, attention);
      } else if (IsMatMul(reader, true, false) &&
                 graph_.nodes[reader].inputs ==
                     std::vector<NodeOutput>{{ds, 0}, attention.q_operand}) {
        found.dk = AfterTranspose(reader);
      }
    }
    if (!d_o || readers_[ds].size() != 2 || found.dq < 0 || found.dk < 0 ||
        found.dv < 0 || attention.output > found.first ||
        graph_.TypeOf(*d_o) != graph_.nodes[attention.output].outputs[0]) {
      return std::nullopt;
    }
    return found;
  }

  // Returns the node with the gradient of the products, starting from the
  // gradient of the softmax. Returns kResult if the scores are masked and the
  // gradient is not, or the reverse.
  int AfterMask(int softmax_grad, const Attention& attention) const {
    int behind = softmax_grad;
    bool is_masked = false;
    for (int reader = OnlyReader(behind); reader != kResult;
         reader = OnlyReader(behind)) {
      const Node& node = graph_.nodes[reader];
      if (attention.mask >= 0 && !is_masked && IsMasking(reader, 0) &&
          node.inputs[0] == graph_.nodes[attention.mask].inputs[0] &&
          node.inputs[1].node == behind && ConstantOf(node.inputs[2]) == 0) {
        is_masked = true;
      } else if (!IsCast(reader)) {
        break;
      }
      behind = reader;
    }
    return is_masked == (attention.mask >= 0) ? behind : kResult;
  }

  // Returns the node with the gradient of the query, starting from the product
  // that computes the gradient of the scaled query.
  int AfterScalingAndTranspose(int product, const Attention& attention) const {
    if (!MatchScaling(attention.q_operand)) return AfterTranspose(product);
    const int scaling = OnlyReader(product);
    if (scaling == kResult) return kResult;
    const std::optional<Scaled> scaled = MatchScaling({scaling, 0});
    if (!scaled || scaled->value != NodeOutput{product, 0} ||
        scaled->scale != attention.scale) {
      return kResult;
    }
    return AfterTranspose(scaling);
  }

  // Inputs of the new ops if the scores are masked.
  struct Masked {
    NodeOutput bias;  // Each element is 0 or kMaskedScore.
    // bool, broadcastable to the query: true if a query may attend to any key.
    // Absent if every query may.
    std::optional<NodeOutput> has_key;
    NodeOutput q;  // 0 for a query without a key.
  };

  NodeOutput Append(const std::string& op, std::vector<NodeOutput> inputs,
                    Attributes attributes, TensorType type) {
    const auto position = static_cast<int>(graph_.nodes.size());
    graph_.nodes.push_back(
        {.op = op,
         .name = absl::StrCat("masked_attention/", op, "_", position),
         .inputs = std::move(inputs),
         .control_inputs = {},
         .attributes = std::move(attributes),
         .outputs = {std::move(type)},
         .subgraphs = {}});
    readers_.emplace_back();
    return {position, 0};
  }

  NodeOutput AppendConstant(DType dtype, double value,
                            const Shape& shape = {}) {
    Tensor constant = Tensor::Full(dtype, shape, value);
    const TensorType type = constant.type();
    return Append(std::string(kConstantOp), {},
                  {{"value", std::move(constant)}}, type);
  }

  NodeOutput AppendReshape(NodeOutput x, const std::vector<int64_t>& shape) {
    if (graph_.TypeOf(x).shape == Shape(shape)) return x;
    return Append("Reshape", {x}, {{"shape", shape}},
                  {graph_.TypeOf(x).dtype, Shape(shape)});
  }

  // Returns `x` where `has_key` is true, and 0 elsewhere.
  NodeOutput AppendSelect(NodeOutput has_key, NodeOutput x) {
    const TensorType type = graph_.TypeOf(x);
    return Append("Select", {has_key, x, AppendConstant(type.dtype, 0)}, {},
                  type);
  }

  Masked AppendMask(const Attention& attention) {
    const NodeOutput mask = graph_.nodes[attention.mask].inputs[0];
    const TensorType q = graph_.TypeOf(attention.q);
    const Shape mask_shape = graph_.TypeOf(mask).shape;
    // The axes of scores are batch, heads, time, source time.
    std::vector<int64_t> extents(mask_shape.dims().begin(),
                                 mask_shape.dims().end());
    extents.insert(extents.begin(), q.shape.rank() - extents.size(), 1);
    if (q.shape.rank() == 3) extents.insert(extents.begin() + 1, 1);
    const NodeOutput aligned = AppendReshape(mask, extents);
    // A bias must have the query's time extent; the mask may have 1 there.
    const int64_t time = q.shape.dim(1);
    extents[2] = time;
    const NodeOutput bias =
        Append("Select",
               {aligned, AppendConstant(q.dtype, 0, {time, 1}),
                AppendConstant(q.dtype, kMaskedScore)},
               {}, {q.dtype, Shape(extents)});
    if (EachRowHasTrue(NodeOf(mask))) return {bias, std::nullopt, attention.q};

    extents.back() = 1;
    const NodeOutput greatest = Append(
        "Max", {bias}, {{"axes", std::vector<int64_t>{3}}, {"keep_dims", true}},
        {q.dtype, Shape(extents)});
    NodeOutput has_key =
        Append("GreaterEqual", {greatest, AppendConstant(q.dtype, 0)}, {},
               {DType::kBool, Shape(extents)});
    std::swap(extents[1], extents[2]);
    if (extents[1] != 1 && extents[2] != 1) {
      has_key = Append("Transpose", {has_key},
                       {{"permutation", std::vector<int64_t>{0, 2, 1, 3}}},
                       {DType::kBool, Shape(extents)});
    }
    if (q.shape.rank() == 3) extents.erase(extents.begin() + 2);
    has_key = AppendReshape(has_key, extents);
    return {bias, has_key, AppendSelect(has_key, attention.q)};
  }

  // True if `holds` returns true for each row of a constant mask. Its arguments
  // are the index of the row and the row's elements.
  static bool HoldsForRows(
      const Node& mask,
      absl::FunctionRef<bool(int64_t, absl::Span<const bool>)> holds) {
    if (mask.op != kConstantOp || mask.outputs[0].shape.rank() == 0) {
      return false;
    }
    const Tensor value = mask.attributes.GetOr<Tensor>("value", Tensor());
    const auto row_size = static_cast<size_t>(value.shape().dims().back());
    absl::Span<const bool> rest = value.flat<bool>();
    for (int64_t row = 0; !rest.empty(); ++row) {
      if (!holds(row, rest.first(row_size))) return false;
      rest.remove_prefix(row_size);
    }
    return true;
  }

  static bool EachRowHasTrue(const Node& mask) {
    return HoldsForRows(mask, [](int64_t, absl::Span<const bool> row) {
      return std::find(row.begin(), row.end(), true) != row.end();
    });
  }

  // True if the mask is a constant [time, source time] that is true at and
  // before the diagonal.
  bool IsCausal(const Attention& attention) const {
    if (attention.mask < 0) return false;
    const Node& mask = NodeOf(graph_.nodes[attention.mask].inputs[0]);
    const int64_t time = graph_.TypeOf(attention.q).shape.dim(1);
    const int64_t source_time = graph_.TypeOf(attention.k).shape.dim(1);
    return mask.outputs[0].shape.element_count() == time * source_time &&
           mask.outputs[0].shape.dims().back() == source_time &&
           HoldsForRows(mask, [](int64_t i, absl::Span<const bool> row) {
             const size_t kept =
                 std::min(row.size(), static_cast<size_t>(i + 1));
             return std::count(row.begin(), row.begin() + kept, true) ==
                        static_cast<int64_t>(kept) &&
                    std::count(row.begin() + kept, row.end(), true) == 0;
           });
  }

  Node MakeForward(const Attention& attention, const Masked* masked,
                   const AttentionGeometry& geometry) const {
    const Node& output = graph_.nodes[attention.output];
    Node made = {.op = std::string(kFusedAttentionOp),
                 .name = output.name,
                 .inputs = {attention.q, attention.k, attention.v},
                 .control_inputs = output.control_inputs,
                 .attributes = {{std::string(kAttentionScaleAttribute),
                                 attention.scale}},
                 .outputs = {output.outputs[0],
                             {DType::kFloat32, geometry.StatisticsShape()}},
                 .subgraphs = {}};
    if (masked != nullptr) {
      made.inputs[0] = masked->q;
      made.inputs.push_back(masked->bias);
    }
    return made;
  }

  Node MakeGrad(const Attention& attention, const AttentionGrad& grad) const {
    const Node& first = graph_.nodes[grad.first];
    const Node& forward = graph_.nodes[attention.output];
    Node made = {
        .op = std::string(kFusedAttentionGradOp),
        .name = first.name,
        .inputs = {grad.d_o,
                   forward.inputs[0],
                   forward.inputs[1],
                   forward.inputs[2],
                   {attention.output, 0},
                   {attention.output, 1}},
        .control_inputs = first.control_inputs,
        .attributes = forward.attributes,
        .outputs = {graph_.TypeOf(attention.q), graph_.TypeOf(attention.k),
                    graph_.TypeOf(attention.v)},
        .subgraphs = {}};
    if (forward.inputs.size() > 3) made.inputs.push_back(forward.inputs[3]);
    return made;
  }

  // Returns true if the attention has been replaced by new ops.
  bool Fuse(const Attention& attention) {
    const bool is_causal = IsCausal(attention);
    std::optional<Masked> masked;
    if (attention.mask >= 0 && !is_causal) masked = AppendMask(attention);
    const auto geometry = AttentionGeometry::Of(
        graph_.TypeOf(attention.q), graph_.TypeOf(attention.k),
        graph_.TypeOf(attention.v),
        masked.has_value() ? &graph_.TypeOf(masked->bias) : nullptr);
    if (!geometry.ok()) return false;
    Node forward = MakeForward(
        attention, masked.has_value() ? &*masked : nullptr, *geometry);
    if (is_causal) {
      forward.attributes.Set(kAttentionCausalAttribute, true);
    }
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
    ReplaceGradients(*grad, masked, std::move(backward));
    return true;
  }

  // Redirects readers of the old gradients to the outputs of the new op.
  void ReplaceGradients(const AttentionGrad& grad,
                        const std::optional<Masked>& masked, Node backward) {
    NodeOutput dq = {grad.first, 0};
    const bool is_selected = masked.has_value() && masked->has_key.has_value();
    if (is_selected) {
      // The Select reads the old dq for now; its input is corrected after all
      // other readers have been redirected.
      dq = AppendSelect(*masked->has_key, {grad.dq, 0});
    }
    const auto redirect = [&](NodeOutput* read) {
      if (read->node == grad.dq) {
        *read = dq;
      } else if (read->node == grad.dk) {
        *read = {grad.first, 1};
      } else if (read->node == grad.dv) {
        *read = {grad.first, 2};
      }
    };
    for (Node& node : graph_.nodes) {
      for (NodeOutput& input : node.inputs) redirect(&input);
    }
    for (NodeOutput& result : graph_.results) redirect(&result);
    if (is_selected) graph_.nodes[dq.node].inputs[1] = {grad.first, 0};
    graph_.nodes[grad.first] = std::move(backward);
  }

  Graph& graph_;
  const absl::FunctionRef<bool(const KernelSpec&)> is_supported_;
  // By node; a reader occurs once for each read.
  std::vector<std::vector<int>> readers_;
};

}  // namespace

void FuseAttention(Graph* typed_graph, const OpRegistry& ops,
                   absl::FunctionRef<bool(const KernelSpec&)> is_supported) {
  // Dead nodes would count as readers.
  *typed_graph = DropDeadNodes(*typed_graph, ops);
  const size_t node_count = typed_graph->nodes.size();
  const bool has_fused = AttentionFusion(typed_graph, is_supported).Run();
  if (!has_fused && typed_graph->nodes.size() == node_count) return;
  SortNodes(typed_graph);
  *typed_graph = DropDeadNodes(*typed_graph, ops);
}

}  // namespace muster
