// Translations of matrix products, lookups and changes of shape.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/train/onnx/graph_translator.h"
#include "common/learn/train/onnx/onnx_graph.h"
#include "common/learn/train/onnx/translations.h"
#include "proto/onnx.pb.h"

namespace muster {
namespace {

AxisOrder WithLastAxesSwapped(int rank, bool is_swapped) {
  AxisOrder order = InOrder(rank);
  if (is_swapped) std::swap(order[rank - 1], order[rank - 2]);
  return order;
}

}  // namespace

absl::Status MatMulToOnnx(OnnxNode& node) {
  const AxisOrder a = WithLastAxesSwapped(node.input_rank(0),
                                          node.Attribute<bool>("transpose_a"));
  const AxisOrder b = WithLastAxesSwapped(node.input_rank(1),
                                          node.Attribute<bool>("transpose_b"));
  node.SetOutput(0, node.Emit("MatMul", {node.Input(0, a), node.Input(1, b)}));
  return absl::OkStatus();
}

absl::Status GatherToOnnx(OnnxNode& node) {
  node.SetOutput(
      0, node.Emit("Gather", {node.Input(0), node.Input(1)},
                   {OnnxInt("axis", node.Axis("axis", node.input_rank(0)))}));
  return absl::OkStatus();
}

absl::Status OneHotToOnnx(OnnxNode& node) {
  // onnxruntime has no kernels for most combinations of dtypes.
  const DType dtype = node.output_type(0).dtype;
  const Tensor values = Tensor::FromValues<float>(
      {2}, {static_cast<float>(node.Attribute<double>("off_value", 0)),
            static_cast<float>(node.Attribute<double>("on_value", 1))});
  const std::string indices = node.Emit(
      "Cast", {node.Input(0)}, {OnnxInt("to", OnnxDTypeOf(DType::kInt64))});
  const std::string depth = node.Number(
      static_cast<double>(node.Attribute<int64_t>("depth")), DType::kInt64);
  std::string y = node.Emit("OneHot", {indices, depth, node.Weight(values)},
                            {OnnxInt("axis", -1)});
  if (dtype != DType::kFloat32) {
    y = node.Emit("Cast", {y}, {OnnxInt("to", OnnxDTypeOf(dtype))});
  }
  node.SetOutput(0, y);
  return absl::OkStatus();
}

absl::Status ReshapeToOnnx(OnnxNode& node) {
  std::vector<int64_t> shape = node.Attribute<std::vector<int64_t>>("shape");
  const bool has_zero = std::count(shape.begin(), shape.end(), 0) > 0;
  std::vector<proto::OnnxAttribute> attributes;
  // Otherwise 0 stands for the extent of the input.
  if (has_zero) attributes.push_back(OnnxInt("allowzero", 1));
  node.SetOutput(0, node.Emit("Reshape", {node.Input(0), node.Ints(shape)},
                              std::move(attributes)));
  return absl::OkStatus();
}

absl::Status ReshapeLikeToOnnx(OnnxNode& node) {
  const std::string shape = node.Emit("Shape", {node.Input(1)});
  node.SetOutput(0, node.Emit("Reshape", {node.Input(0), shape},
                              {OnnxInt("allowzero", 1)}));
  return absl::OkStatus();
}

absl::Status ExpandDimsToOnnx(OnnxNode& node) {
  const AxisOrder order = node.ExistingOrder(0);
  const int64_t axis = node.Axis("axis", node.output_rank());
  // Before the axis that follows it. An image of height 1 has its channels
  // first if the sequence that it comes from has.
  AxisOrder expanded;
  for (const int64_t old : order) {
    const int64_t shifted = old < axis ? old : old + 1;
    if (shifted == axis + 1) expanded.push_back(axis);
    expanded.push_back(shifted);
  }
  if (expanded.size() == order.size()) expanded.push_back(axis);
  node.SetOutput(
      0,
      node.Emit("Unsqueeze", {node.Input(0, order),
                              node.Ints({PositionOf(axis, expanded)})}),
      expanded);
  return absl::OkStatus();
}

absl::Status SqueezeToOnnx(OnnxNode& node) {
  const AxisOrder order = node.ExistingOrder(0);
  const std::vector<int64_t> axes = node.Axes("axes", node.input_rank(0));
  if (axes.empty()) return ForwardToOnnx(node);
  const std::string positions = node.Ints(PositionsOf(axes, order));
  node.SetOutput(0, node.Emit("Squeeze", {node.Input(0, order), positions}),
                 WithoutAxes(order, axes));
  return absl::OkStatus();
}

absl::Status TransposeToOnnx(OnnxNode& node) {
  // No node: what exists is the output with its axes in another order.
  const std::vector<int64_t> permutation =
      node.Axes("permutation", node.input_rank(0));
  if (node.input(0).names.empty()) node.Input(0);
  for (const auto& [order, name] : node.input(0).names) {
    AxisOrder of_output;
    for (const int64_t axis : order) {
      of_output.push_back(PositionOf(axis, permutation));
    }
    node.SetOutput(0, name, of_output);
  }
  return absl::OkStatus();
}

absl::Status BroadcastToToOnnx(OnnxNode& node) {
  const auto shape = node.Attribute<std::vector<int64_t>>("shape");
  node.SetOutput(0, node.Emit("Expand", {node.Input(0), node.Ints(shape)}));
  return absl::OkStatus();
}

absl::Status BroadcastLikeToOnnx(OnnxNode& node) {
  const std::string shape = node.Emit("Shape", {node.Input(1)});
  node.SetOutput(0, node.Emit("Expand", {node.Input(0), shape}));
  return absl::OkStatus();
}

}  // namespace muster
