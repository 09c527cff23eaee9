// Translations of ops on images [batch, height, width, channels]. Those of ONNX
// take the channels first.
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/window.h"
#include "common/learn/train/onnx/graph_translator.h"
#include "common/learn/train/onnx/onnx_graph.h"
#include "common/learn/train/onnx/translations.h"
#include "proto/onnx.pb.h"

namespace muster {
namespace {

using NodeAttributes = std::vector<proto::OnnxAttribute>;

constexpr int kImageRank = 4;

std::vector<int64_t> ToVector(const std::array<int64_t, 2>& values) {
  return {values.begin(), values.end()};
}

// The height and width of the windows of a kernel.
std::vector<int64_t> KernelExtents(const OnnxNode& node, int input) {
  const Shape& kernel = node.input_type(input).shape;
  return {kernel.dim(0), kernel.dim(1)};
}

// The attributes of windows of `extents` on images of shape `x`.
absl::StatusOr<NodeAttributes> WindowAttributesOf(
    const OnnxNode& node, const std::vector<int64_t>& extents, const Shape& x) {
  ASSIGN_OR_RETURN(const WindowOptions options,
                   WindowOptions::FromAttributes(node.node().attributes));
  NodeAttributes attributes = {OnnxInts("kernel_shape", extents),
                               OnnxInts("strides", ToVector(options.strides))};
  const bool is_known =
      x.dim(1) != Shape::kUnknown && x.dim(2) != Shape::kUnknown;
  if (options.padding == PaddingKind::kSame && !is_known) {
    attributes.push_back(OnnxText("auto_pad", "SAME_UPPER"));
    return attributes;
  }
  std::vector<int64_t> before;
  std::vector<int64_t> after;
  for (const int axis : {0, 1}) {
    if (options.padding == PaddingKind::kExplicit) {
      before.push_back(options.explicit_padding[2 * axis]);
      after.push_back(options.explicit_padding[2 * axis + 1]);
      continue;
    }
    ASSIGN_OR_RETURN(
        const WindowAxis placed,
        PlaceWindows(options, axis, x.dim(axis + 1), extents[axis]));
    before.push_back(placed.padding_before);
    after.push_back(placed.padding_after);
  }
  before.insert(before.end(), after.begin(), after.end());
  attributes.push_back(OnnxInts("pads", before));
  return attributes;
}

absl::StatusOr<NodeAttributes> ConvAttributes(const OnnxNode& node,
                                              const Shape& x, int64_t groups) {
  ASSIGN_OR_RETURN(const WindowOptions options,
                   WindowOptions::FromAttributes(node.node().attributes));
  ASSIGN_OR_RETURN(NodeAttributes attributes,
                   WindowAttributesOf(node, KernelExtents(node, 1), x));
  attributes.push_back(OnnxInts("dilations", ToVector(options.dilations)));
  attributes.push_back(OnnxInt("group", groups));
  return attributes;
}

void SetImages(OnnxNode& node, absl::string_view op_type,
               absl::Span<const std::string> inputs,
               NodeAttributes attributes) {
  node.SetOutput(0, node.Emit(op_type, inputs, std::move(attributes)),
                 ChannelsFirst(kImageRank));
}

// The order of the axes of a kernel in ONNX: output channels, input channels,
// height, width.
AxisOrder KernelOrder() { return {3, 2, 0, 1}; }

absl::Status PoolToOnnx(OnnxNode& node, absl::string_view op_type) {
  ASSIGN_OR_RETURN(
      NodeAttributes attributes,
      WindowAttributesOf(node, node.Attribute<std::vector<int64_t>>("window"),
                         node.input_type(0).shape));
  SetImages(node, op_type, {node.Input(0, ChannelsFirst(kImageRank))},
            std::move(attributes));
  return absl::OkStatus();
}

}  // namespace

absl::Status Conv2DToOnnx(OnnxNode& node) {
  ASSIGN_OR_RETURN(NodeAttributes attributes,
                   ConvAttributes(node, node.input_type(0).shape,
                                  node.Attribute<int64_t>("groups", 1)));
  SetImages(
      node, "Conv",
      {node.Input(0, ChannelsFirst(kImageRank)), node.Input(1, KernelOrder())},
      std::move(attributes));
  return absl::OkStatus();
}

absl::Status DepthwiseConv2DToOnnx(OnnxNode& node) {
  const Shape& kernel = node.input_type(1).shape;
  const int64_t channels = kernel.dim(2);
  ASSIGN_OR_RETURN(NodeAttributes attributes,
                   ConvAttributes(node, node.input_type(0).shape, channels));
  // Each channel is a group, whose outputs are next to each other.
  const Shape shape = {channels * kernel.dim(3), 1, kernel.dim(0),
                       kernel.dim(1)};
  const AxisOrder order = {2, 3, 0, 1};
  const Tensor* const constant = node.Constant(1);
  const std::string weight =
      constant != nullptr
          ? node.Weight(Transposed(*constant, order).Reshaped(shape))
          : node.Emit("Reshape",
                      {node.Input(1, order), node.Ints(shape.dims())});
  SetImages(node, "Conv", {node.Input(0, ChannelsFirst(kImageRank)), weight},
            std::move(attributes));
  return absl::OkStatus();
}

absl::Status ConvTransposeToOnnx(OnnxNode& node) {
  ASSIGN_OR_RETURN(const WindowOptions options,
                   WindowOptions::FromAttributes(node.node().attributes));
  const Shape& x = node.input_type(0).shape;
  const Shape& y = node.output_type(0).shape;
  if (y.dim(1) == Shape::kUnknown || y.dim(2) == Shape::kUnknown) {
    return node.Refuse(
        "a transposed convolution needs known heights and widths; give the "
        "model an Input() of known extents");
  }
  ASSIGN_OR_RETURN(
      NodeAttributes attributes,
      ConvAttributes(node, y, node.Attribute<int64_t>("groups", 1)));
  // The rows and columns of the output that no window covers.
  std::vector<int64_t> output_padding;
  for (const int axis : {0, 1}) {
    ASSIGN_OR_RETURN(const WindowAxis placed,
                     PlaceWindows(options, axis, y.dim(axis + 1),
                                  node.input_type(1).shape.dim(axis)));
    output_padding.push_back(
        y.dim(axis + 1) + placed.padding_before + placed.padding_after -
        (x.dim(axis + 1) - 1) * placed.stride - placed.span());
  }
  attributes.push_back(OnnxInts("output_padding", output_padding));
  SetImages(
      node, "ConvTranspose",
      {node.Input(0, ChannelsFirst(kImageRank)), node.Input(1, KernelOrder())},
      std::move(attributes));
  return absl::OkStatus();
}

absl::Status MaxPoolToOnnx(OnnxNode& node) {
  return PoolToOnnx(node, "MaxPool");
}

absl::Status AveragePoolToOnnx(OnnxNode& node) {
  return PoolToOnnx(node, "AveragePool");
}

absl::Status BatchNormToOnnx(OnnxNode& node) {
  const AxisOrder order = ChannelsFirst(node.input_rank(0));
  std::vector<std::string> inputs = {node.Input(0, order)};
  for (int i = 1; i < node.input_count(); ++i) inputs.push_back(node.Input(i));
  node.SetOutput(
      0,
      node.Emit("BatchNormalization", inputs,
                {OnnxFloat("epsilon", node.Attribute<double>("epsilon"))}),
      order);
  return absl::OkStatus();
}

absl::Status ResizeImageToOnnx(OnnxNode& node) {
  const AxisOrder order = ChannelsFirst(kImageRank);
  const bool is_bilinear =
      node.Attribute<std::string>("interpolation") == "bilinear";
  NodeAttributes attributes = {
      OnnxText("coordinate_transformation_mode", "half_pixel"),
      OnnxText("mode", is_bilinear ? "linear" : "nearest")};
  if (!is_bilinear) {
    attributes.push_back(OnnxText("nearest_mode", "round_prefer_ceil"));
  }
  const std::string x = node.Input(0, order);
  const std::string shape = node.Emit("Shape", {x}, {OnnxInt("end", 2)});
  const std::string sizes =
      node.Emit("Concat",
                {shape, node.Ints({node.Attribute<int64_t>("height"),
                                   node.Attribute<int64_t>("width")})},
                {OnnxInt("axis", 0)});
  SetImages(node, "Resize", {x, "", "", sizes}, std::move(attributes));
  return absl::OkStatus();
}

}  // namespace muster
