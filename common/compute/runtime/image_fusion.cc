#include "common/compute/runtime/image_fusion.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/compute/runtime/typed_graph.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/window.h"

namespace muster {
namespace {

using List = std::vector<int64_t>;

// Counts the readers of each output, including results.
class Readers {
 public:
  explicit Readers(const Graph& graph) : counts_(graph.nodes.size()) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      counts_[i].resize(graph.nodes[i].outputs.size());
    }
    for (const Node& node : graph.nodes) {
      for (const NodeOutput& input : node.inputs) ++Count(input);
    }
    for (const NodeOutput& result : graph.results) ++Count(result);
  }

  bool IsReadOnce(NodeOutput output) { return Count(output) == 1; }

 private:
  int& Count(NodeOutput output) { return counts_[output.node][output.output]; }

  std::vector<std::vector<int>> counts_;
};

bool IsForwardConv(const Node& node) {
  return node.op == "Conv2D" || node.op == "DepthwiseConv2D";
}
bool IsBackpropInput(const Node& node) {
  return node.op == "Conv2DBackpropInput" ||
         node.op == "DepthwiseConv2DBackpropInput";
}
bool IsBackpropKernel(const Node& node) {
  return node.op == "Conv2DBackpropKernel" ||
         node.op == "DepthwiseConv2DBackpropKernel";
}
// Returns the paddings of a Pad that a convolution can include: zeros around
// height and width only.
std::optional<List> FoldablePaddings(const Node& pad) {
  if (pad.op != "Pad" || pad.outputs[0].shape.rank() != 4 ||
      pad.attributes.GetOr("value", 0.0) != 0) {
    return {};
  }
  const List paddings = pad.attributes.GetOr<List>("paddings", {});
  if (paddings.size() != 8 || paddings[0] != 0 || paddings[1] != 0 ||
      paddings[6] != 0 || paddings[7] != 0) {
    return {};
  }
  return List(paddings.begin() + 2, paddings.begin() + 6);
}

// Adds `paddings` to those of the convolution `attributes`. Returns false if
// the attributes cannot express the sum.
bool AddPaddings(const List& paddings, Attributes* attributes) {
  auto options = WindowOptions::FromAttributes(*attributes);
  // The paddings of SAME depend on the padded extents.
  if (!options.ok() || options->padding == PaddingKind::kSame) return false;
  List sums(options->explicit_padding.begin(), options->explicit_padding.end());
  if (options->padding == PaddingKind::kValid) sums.assign(4, 0);
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += paddings[i];
  attributes->Set("padding", std::string("EXPLICIT"));
  attributes->Set("explicit_padding", sums);
  return true;
}

// True for a SliceLike that removes exactly the margins that `pad` has added.
bool RemovesPadding(const Node& slice, const Node& pad) {
  if (slice.op != "SliceLike" ||
      slice.outputs[0].shape.rank() != pad.outputs[0].shape.rank()) {
    return false;
  }
  const List paddings = pad.attributes.GetOr<List>("paddings", {});
  const List begin = slice.attributes.GetOr<List>("begin", {});
  for (size_t axis = 0; axis < begin.size(); ++axis) {
    if (begin[axis] != paddings[2 * axis]) return false;
  }
  return begin.size() * 2 == paddings.size();
}

// Returns the node that replaces `slice`, the slice of the gradient of a padded
// image.
std::optional<Node> WithoutSlice(const Graph& graph, const Node& slice,
                                 Readers* readers) {
  if (slice.op != "SliceLike" || !readers->IsReadOnce(slice.inputs[0])) {
    return {};
  }
  const Node& backprop = graph.nodes[slice.inputs[0].node];
  if (!IsBackpropInput(backprop)) return {};
  const Node& pad = graph.nodes[backprop.inputs[2].node];
  const std::optional<List> paddings = FoldablePaddings(pad);
  if (!paddings || !RemovesPadding(slice, pad) ||
      slice.outputs[0] != graph.TypeOf(pad.inputs[0])) {
    return {};
  }
  Node folded = backprop;
  if (!AddPaddings(*paddings, &folded.attributes)) return {};
  folded.name = slice.name;
  folded.control_inputs = slice.control_inputs;
  folded.inputs[2] = pad.inputs[0];
  folded.outputs = slice.outputs;
  return folded;
}

// True if the type has one number for each channel of `images`.
bool IsChannelVector(const TensorType& type, const TensorType& images) {
  const int rank = type.shape.rank();
  const int64_t channels = images.shape.dim(images.shape.rank() - 1);
  return type.dtype == images.dtype && rank >= 1 &&
         type.shape.dim(rank - 1) == channels &&
         type.shape.element_count() == channels;
}

// Returns `node` with the op `op` as a replacement for its reader `last`.
Node FusedAt(const Node& last, const Node& node, absl::string_view op) {
  Node fused = node;
  fused.op = std::string(op);
  fused.name = last.name;
  fused.control_inputs = last.control_inputs;
  fused.outputs = last.outputs;
  return fused;
}

class ImageFusion {
 public:
  ImageFusion(Graph* graph, const OpRegistry& ops,
              absl::FunctionRef<bool(const KernelSpec&)> is_supported)
      : graph_(*graph),
        ops_(ops),
        is_supported_(is_supported),
        readers_(*graph) {}

  void Run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      Node& node = graph_.nodes[i];
      for (NodeOutput& input : node.inputs) Redirect(&input);
      std::optional<Node> fused;
      if (node.op == "BatchNormInference") {
        fused = FuseNormalization(node);
      } else if (node.op == "Add") {
        fused = FuseBias(node, 0);
        if (!fused) fused = FuseBias(node, 1);
      } else if (!GradientOfRelu(node.op).empty()) {
        fused = FuseActivation(node);
        if (!fused) FuseTraining(static_cast<int>(i));
      } else if (node.op == "BatchNormTrainingGrad") {
        fused = FuseTrainingGrad(node);
      }
      if (fused && is_supported_(SpecOf(graph_, *fused))) {
        node = *std::move(fused);
      }
    }
    for (NodeOutput& result : graph_.results) Redirect(&result);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      FuseMoments(static_cast<int>(i));
    }
  }

 private:
  // A Relu that has been fused into the normalization before it.
  struct ReluFusion {
    int relu;
    int normalization;
  };

  void Redirect(NodeOutput* output) const {
    for (const ReluFusion& takeover : takeovers_) {
      if (output->node == takeover.relu) {
        *output = {takeover.normalization, 0};
      }
    }
  }

  // Returns "" if the node is not Relu or Relu6.
  const std::string& GradientOfRelu(absl::string_view op) const {
    return ops_.FindOrPlain(op).gradient_by_either;
  }

  const Node& NodeOf(NodeOutput output) const {
    return graph_.nodes[output.node];
  }

  std::optional<Node> FuseNormalization(const Node& normalization) {
    const Node& conv = NodeOf(normalization.inputs[0]);
    if (!IsForwardConv(conv) || !readers_.IsReadOnce(normalization.inputs[0])) {
      return {};
    }
    Node fused = FusedAt(normalization, conv, absl::StrCat("Fused", conv.op));
    fused.inputs.insert(fused.inputs.end(), normalization.inputs.begin() + 1,
                        normalization.inputs.end());
    fused.attributes.Set("epsilon",
                         normalization.attributes.GetOr("epsilon", 0.0));
    return fused;
  }

  std::optional<Node> FuseBias(const Node& add, int conv_input) {
    const NodeOutput images = add.inputs[conv_input];
    const NodeOutput bias = add.inputs[1 - conv_input];
    const Node& conv = NodeOf(images);
    if (!IsForwardConv(conv) || !readers_.IsReadOnce(images) ||
        graph_.TypeOf(images) != add.outputs[0] ||
        !IsChannelVector(graph_.TypeOf(bias), graph_.TypeOf(images))) {
      return {};
    }
    Node fused = FusedAt(add, conv, absl::StrCat("Fused", conv.op));
    fused.inputs.push_back(bias);
    return fused;
  }

  std::optional<Node> FuseActivation(const Node& relu) {
    const Node& before = NodeOf(relu.inputs[0]);
    const bool is_fused_conv =
        before.op == "FusedConv2D" || before.op == "FusedDepthwiseConv2D";
    if ((!is_fused_conv && before.op != "BatchNormInference") ||
        before.attributes.Has("activation") ||
        !readers_.IsReadOnce(relu.inputs[0])) {
      return {};
    }
    Node fused = FusedAt(
        relu, before,
        is_fused_conv ? before.op : std::string("FusedBatchNormInference"));
    fused.attributes.Set("activation", relu.op);
    return fused;
  }

  // The normalization has further outputs, so the relu is fused into it and not
  // the reverse.
  void FuseTraining(int relu_index) {
    const Node& relu = graph_.nodes[relu_index];
    const NodeOutput y = relu.inputs[0];
    Node& normalization = graph_.nodes[y.node];
    if (normalization.op != "BatchNormTraining" || y.output != 0 ||
        !readers_.IsReadOnce(y)) {
      return;
    }
    Node fused = normalization;
    fused.op = "FusedBatchNormTraining";
    fused.attributes.Set("activation", relu.op);
    if (!is_supported_(SpecOf(graph_, fused))) return;
    normalization = std::move(fused);
    takeovers_.push_back({relu_index, y.node});
  }

  // The gradient of a normalization can compute from x where the activation
  // after it was not zero.
  std::optional<Node> FuseTrainingGrad(const Node& gradient) {
    const Node& relu_gradient = NodeOf(gradient.inputs[0]);
    if (relu_gradient.inputs.size() != 2 ||
        !readers_.IsReadOnce(gradient.inputs[0])) {
      return {};
    }
    const NodeOutput y = relu_gradient.inputs[1];
    const Node& normalization = NodeOf(y);
    if (normalization.op != "FusedBatchNormTraining" || y.output != 0 ||
        GradientOfRelu(normalization.attributes.GetOr<std::string>(
            "activation", "")) != relu_gradient.op ||
        normalization.inputs[0] != gradient.inputs[1] ||
        gradient.inputs[3] != NodeOutput{y.node, 1} ||
        gradient.inputs[4] != NodeOutput{y.node, 2}) {
      return {};
    }
    Node fused = gradient;
    fused.op = "FusedBatchNormTrainingGrad";
    fused.inputs[0] = relu_gradient.inputs[0];
    fused.inputs.push_back(normalization.inputs[2]);
    fused.attributes = normalization.attributes;
    return fused;
  }

  // The convolution computes mean and variance of its result as it writes it,
  // and passes them to the normalization.
  void FuseMoments(int normalization_index) {
    Node& normalization = graph_.nodes[normalization_index];
    const bool is_fused = normalization.op == "FusedBatchNormTraining";
    if (!is_fused && normalization.op != "BatchNormTraining") return;
    const NodeOutput y = normalization.inputs[0];
    Node& conv = graph_.nodes[y.node];
    if (!IsForwardConv(conv)) return;
    Node with_moments = conv;
    with_moments.op = absl::StrCat(conv.op, "Moments");
    with_moments.outputs = {conv.outputs[0], normalization.outputs[1],
                            normalization.outputs[2]};
    if (!is_supported_(SpecOf(graph_, with_moments))) return;
    Node given = normalization;
    given.op = is_fused ? "FusedBatchNormInference" : "BatchNormInference";
    given.outputs.resize(1);
    given.inputs.push_back({y.node, 1});
    given.inputs.push_back({y.node, 2});
    conv = std::move(with_moments);
    normalization = std::move(given);
    const auto redirect = [&](NodeOutput* output) {
      if (output->node == normalization_index && output->output > 0) {
        output->node = y.node;
      }
    };
    for (Node& node : graph_.nodes) {
      for (NodeOutput& input : node.inputs) redirect(&input);
    }
    for (NodeOutput& result : graph_.results) redirect(&result);
  }

  Graph& graph_;
  const OpRegistry& ops_;
  absl::FunctionRef<bool(const KernelSpec&)> is_supported_;
  Readers readers_;
  std::vector<ReluFusion> takeovers_;
};

}  // namespace

void FoldPadding(Graph* typed_graph) {
  Readers readers(*typed_graph);
  for (Node& node : typed_graph->nodes) {
    if (std::optional<Node> folded =
            WithoutSlice(*typed_graph, node, &readers)) {
      node = *std::move(folded);
      continue;
    }
    if (!IsForwardConv(node) && !IsBackpropKernel(node)) continue;
    const Node& pad = typed_graph->nodes[node.inputs[0].node];
    const std::optional<List> paddings = FoldablePaddings(pad);
    if (paddings && AddPaddings(*paddings, &node.attributes)) {
      node.inputs[0] = pad.inputs[0];
    }
  }
}

void FuseImageOps(Graph* typed_graph, const OpRegistry& ops,
                  absl::FunctionRef<bool(const KernelSpec&)> is_supported) {
  ImageFusion(typed_graph, ops, is_supported).Run();
}

}  // namespace muster
