#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/kernels/image_geometry.h"
#include "common/compute/stablehlo/hlo_operators.h"
#include "common/compute/stablehlo/translations.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/window.h"

namespace muster {
namespace {

using internal::ConvGeometry;
using internal::ConvPart;
using internal::PoolGeometry;

// One spatial axis of a convolution: lhs is what the window moves over, rhs the
// window.
struct ConvAxis {
  int64_t stride = 1;
  int64_t low = 0;
  int64_t high = 0;
  int64_t lhs_dilation = 1;
  int64_t rhs_dilation = 1;
};

int64_t Dilated(int64_t extent, int64_t dilation) {
  return extent == 0 ? 0 : (extent - 1) * dilation + 1;
}

ConvAxis ForwardAxis(const WindowAxis& axis) {
  return {.stride = axis.stride,
          .low = axis.padding_before,
          .high = (axis.output_extent - 1) * axis.stride +
                  Dilated(axis.window_extent, axis.dilation) -
                  axis.input_extent - axis.padding_before,
          .rhs_dilation = axis.dilation};
}

ConvAxis BackpropInputAxis(const WindowAxis& axis) {
  const int64_t window = Dilated(axis.window_extent, axis.dilation);
  const int64_t low = window - 1 - axis.padding_before;
  return {.low = low,
          .high = axis.input_extent + window - 1 - low -
                  Dilated(axis.output_extent, axis.stride),
          .lhs_dilation = axis.stride,
          .rhs_dilation = axis.dilation};
}

ConvAxis BackpropKernelAxis(const WindowAxis& axis) {
  return {.stride = axis.dilation,
          .low = axis.padding_before,
          .high = (axis.window_extent - 1) * axis.dilation +
                  Dilated(axis.output_extent, axis.stride) - axis.input_extent -
                  axis.padding_before,
          .rhs_dilation = axis.stride};
}

// `lhs`, `rhs` and `out` name the axes: "[b, 0, 1, f]".
HloValue Convolve(const HloValue& lhs, const HloValue& rhs,
                  const HloType& result, const std::array<ConvAxis, 2>& axes,
                  absl::string_view dimensions, int64_t feature_groups,
                  int64_t batch_groups) {
  const auto list = [&](int64_t ConvAxis::*member) {
    return HloArray({axes[0].*member, axes[1].*member});
  };
  return lhs.builder->Emit(
      "stablehlo.convolution", {lhs, rhs}, result,
      absl::StrCat(
          "window_strides = ", list(&ConvAxis::stride), ", padding = dense<[",
          HloList({axes[0].low, axes[0].high}), ", ",
          HloList({axes[1].low, axes[1].high}),
          "]> : tensor<2x2xi64>, lhs_dilation = ",
          list(&ConvAxis::lhs_dilation),
          ", rhs_dilation = ", list(&ConvAxis::rhs_dilation),
          ", window_reversal = array<i1: false, false>, dimension_numbers = "
          "#stablehlo.conv<",
          dimensions, ">, feature_group_count = ", feature_groups,
          " : i64, batch_group_count = ", batch_groups, " : i64"));
}

// Returns the kernel that takes gradients of outputs to gradients of inputs.
HloValue BackpropKernel(const ConvGeometry& g, const HloValue& kernel) {
  const int64_t height = g.height.window_extent;
  const int64_t width = g.width.window_extent;
  const HloValue grouped = Reshape(
      kernel, {height, width, g.group_inputs(), g.groups, g.group_outputs()});
  return Reverse(Reshape(Transpose(grouped, {0, 1, 4, 3, 2}),
                         {height, width, g.group_outputs(), g.input_channels}),
                 {0, 1});
}

// ---- Pooling.

// Attributes of a window over height and width of NHWC images.
std::string WindowAttributes(const PoolGeometry& g, int64_t stride_height,
                             int64_t stride_width) {
  return absl::StrCat(
      "window_dimensions = ",
      HloArray({1, g.height.window_extent, g.width.window_extent, 1}),
      ", window_strides = ", HloArray({1, stride_height, stride_width, 1}));
}

// The padding after the last element that a window covers.
int64_t PaddingAfter(const WindowAxis& axis) {
  return std::max<int64_t>((axis.output_extent - 1) * axis.stride +
                               axis.window_extent - axis.input_extent -
                               axis.padding_before,
                           0);
}

// Attributes of the windows of a pooling over its input.
std::string PoolAttributes(const PoolGeometry& g) {
  return absl::StrCat(
      WindowAttributes(g, g.height.stride, g.width.stride),
      ", padding = dense<[[0, 0], ",
      HloList({g.height.padding_before, PaddingAfter(g.height)}), ", ",
      HloList({g.width.padding_before, PaddingAfter(g.width)}),
      ", [0, 0]]> : tensor<4x2xi64>");
}

HloValue ReduceWindows(HloReduction reduction, const HloValue& x,
                       const HloType& result, const std::string& attributes) {
  HloBuilder& builder = *x.builder;
  return builder.Emit("stablehlo.reduce_window",
                      {x, builder.InitialValue(reduction, x.type.element)},
                      result, attributes,
                      builder.ReductionRegion(reduction, x.type.element));
}

// The number of elements of each window that are not padding: [1, H, W, 1].
HloValue WindowSizes(const PoolGeometry& g, HloBuilder* builder,
                     absl::string_view element) {
  const auto sizes = [](const WindowAxis& axis) {
    std::vector<float> counts;
    for (int64_t i = 0; i < axis.output_extent; ++i) {
      const int64_t begin = i * axis.stride - axis.padding_before;
      counts.push_back(static_cast<float>(
          std::min(begin + axis.window_extent, axis.input_extent) -
          std::max<int64_t>(begin, 0)));
    }
    return counts;
  };
  const std::vector<float> rows = sizes(g.height);
  const std::vector<float> columns = sizes(g.width);
  const auto constant = [&](const std::vector<float>& values,
                            const Shape& shape) {
    return Convert(builder->Constant(Tensor::FromSpan<float>(
                       shape, absl::MakeConstSpan(values))),
                   element);
  };
  return constant(rows, {1, g.height.output_extent, 1, 1}) *
         constant(columns, {1, 1, g.width.output_extent, 1});
}

// The padding in front of dilated gradients, so that the windows that end at an
// element are those that contain it.
int64_t GradientPadding(const WindowAxis& axis) {
  return axis.window_extent - 1 - axis.padding_before;
}
int64_t GradientPaddingAfter(const WindowAxis& axis) {
  return axis.input_extent + axis.window_extent - 1 - GradientPadding(axis) -
         Dilated(axis.output_extent, axis.stride);
}

}  // namespace

absl::StatusOr<HloValues> ConvToHlo(const HloNode& node) {
  ASSIGN_OR_RETURN(const ConvGeometry g, ConvGeometry::Of(node.spec()));
  const HloType& output = node.output();
  if (output.shape.element_count() == 0 ||
      node.input(0).shape().element_count() == 0 ||
      node.input(1).shape().element_count() == 0) {
    return HloValues{node.builder().Constant(output, 0)};
  }
  const Shape kernel_shape = {g.height.window_extent, g.width.window_extent,
                              g.group_inputs(), g.output_channels};
  constexpr absl::string_view kImages =
      "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]";
  switch (g.part) {
    case ConvPart::kForward:
      return HloValues{Convolve(
          node.input(0), Reshape(node.input(1), kernel_shape), output,
          {ForwardAxis(g.height), ForwardAxis(g.width)}, kImages, g.groups, 1)};
    case ConvPart::kBackpropInput:
      return HloValues{Convolve(
          node.input(0),
          BackpropKernel(g, Reshape(node.input(1), kernel_shape)), output,
          {BackpropInputAxis(g.height), BackpropInputAxis(g.width)}, kImages,
          g.groups, 1)};
    case ConvPart::kBackpropKernel:
      break;
  }
  const HloValue gradient =
      Convolve(node.input(0), node.input(1), {output.element, kernel_shape},
               {BackpropKernelAxis(g.height), BackpropKernelAxis(g.width)},
               "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", 1, g.groups);
  return HloValues{Reshape(gradient, output.shape)};
}

absl::StatusOr<HloValues> MaxPoolToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  ASSIGN_OR_RETURN(const PoolGeometry g,
                   PoolGeometry::Of(node.spec(), node.spec().inputs[0]));
  return HloValues{
      ReduceWindows(HloReduction::kMax, x, node.output(), PoolAttributes(g))};
}

absl::StatusOr<HloValues> MaxPoolGradToHlo(const HloNode& node) {
  const HloValue& gradient = node.input(0);
  const HloValue& x = node.input(1);
  ASSIGN_OR_RETURN(const PoolGeometry g,
                   PoolGeometry::Of(node.spec(), node.spec().inputs[1]));
  HloBuilder& builder = node.builder();
  const std::string type = HloType{x.type.element, Shape()}.ToString();
  const std::string a = builder.NewName();
  const std::string b = builder.NewName();
  const std::string is_first = builder.NewName();
  // The first maximum of a window: a later equal element does not replace it.
  const std::string select = absl::StrCat(
      "{ ^bb0(", a, ": ", type, ", ", b, ": ", type, "): ", is_first,
      " = \"stablehlo.compare\"(", a, ", ", b,
      ") {comparison_direction = #stablehlo<comparison_direction GE>} : (",
      type, ", ", type, ") -> tensor<i1> \"stablehlo.return\"(", is_first,
      ") : (tensor<i1>) -> () }");
  return HloValues{builder.Emit(
      "stablehlo.select_and_scatter",
      {x, gradient, builder.Constant({x.type.element, Shape()}, 0)},
      node.output(), PoolAttributes(g),
      absl::StrCat(
          select, ", ",
          builder.ReductionRegion(HloReduction::kSum, x.type.element)))};
}

absl::StatusOr<HloValues> AveragePoolToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  ASSIGN_OR_RETURN(const PoolGeometry g,
                   PoolGeometry::Of(node.spec(), node.spec().inputs[0]));
  return HloValues{
      ReduceWindows(HloReduction::kSum, x, node.output(), PoolAttributes(g)) /
      WindowSizes(g, &node.builder(), x.type.element)};
}

absl::StatusOr<HloValues> AveragePoolGradToHlo(const HloNode& node) {
  ASSIGN_OR_RETURN(const PoolGeometry g,
                   PoolGeometry::Of(node.spec(), node.spec().outputs[0]));
  const HloValue& gradient = node.input(0);
  HloBuilder& builder = node.builder();
  const HloValue parts =
      gradient / WindowSizes(g, &builder, gradient.type.element);
  const HloValue dilated =
      Pad(parts, builder.Constant({gradient.type.element, Shape()}, 0),
          {0, GradientPadding(g.height), GradientPadding(g.width), 0},
          {0, GradientPaddingAfter(g.height), GradientPaddingAfter(g.width), 0},
          {0, g.height.stride - 1, g.width.stride - 1, 0});
  return HloValues{ReduceWindows(HloReduction::kSum, dilated, node.output(),
                                 WindowAttributes(g, 1, 1))};
}

}  // namespace muster
