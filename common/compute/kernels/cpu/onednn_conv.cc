#include "common/compute/kernels/cpu/onednn_conv.h"

#include <algorithm>

#include "common/core/tensor/window.h"

namespace muster::internal {

using dnnl::memory;

ConvDescs::ConvDescs(const ConvGeometry& g, memory::data_type type)
    : x({g.batch, g.input_channels, g.height.input_extent,
         g.width.input_extent},
        type, memory::format_tag::nhwc),
      y({g.batch, g.output_channels, g.height.output_extent,
         g.width.output_extent},
        type, memory::format_tag::nhwc),
      bias({g.output_channels}, type, memory::format_tag::a),
      strides{g.height.stride, g.width.stride},
      dilations{g.height.dilation - 1, g.width.dilation - 1},
      padding_before{g.height.padding_before, g.width.padding_before},
      padding_after{g.height.padding_after, g.width.padding_after} {
  const int64_t inputs = g.group_inputs();
  const int64_t outputs = g.group_outputs();
  const int64_t rows = g.height.window_extent;
  const int64_t columns = g.width.window_extent;
  // Muster's layout is [height, width, inputs of a group, groups * outputs].
  const int64_t input_stride = g.output_channels;
  const int64_t column_stride = inputs * input_stride;
  memory::dims dims = {outputs, inputs, rows, columns};
  memory::dims kernel_strides = {1, input_stride, columns * column_stride,
                                 column_stride};
  if (g.groups > 1) {
    dims.insert(dims.begin(), g.groups);
    kernel_strides.insert(kernel_strides.begin(), outputs);
  }
  own_kernel = memory::desc(dims, type, kernel_strides);
  kernel = memory::desc(dims, type, memory::format_tag::any);
}

dnnl::convolution_forward::primitive_desc ConvDescs::Forward(
    bool has_bias, const dnnl::primitive_attr& attributes) const {
  return {dnnl::convolution_forward::desc(
              dnnl::prop_kind::forward_inference,
              dnnl::algorithm::convolution_direct, x, kernel,
              has_bias ? bias : memory::desc(), y, strides, dilations,
              padding_before, padding_after),
          attributes, OneDnnEngine()};
}

bool IsPointwise(const ConvGeometry& geometry) {
  const auto is_single = [](const WindowAxis& axis) {
    return axis.window_extent == 1 && axis.stride == 1 &&
           axis.padding_before == 0 && axis.padding_after == 0;
  };
  return is_single(geometry.height) && is_single(geometry.width);
}

ConvGeometry AsOneRow(const ConvGeometry& geometry) {
  ConvGeometry row = geometry;
  row.width.input_extent = geometry.batch * geometry.height.input_extent *
                           geometry.width.input_extent;
  row.width.output_extent = row.width.input_extent;
  row.height.input_extent = row.height.output_extent = 1;
  row.batch = 1;
  return row;
}

namespace {

std::optional<ConvStrip> StripOfResult(const ConvGeometry& geometry,
                                       int64_t begin, int64_t end) {
  ConvStrip strip = {.geometry = geometry};
  WindowAxis& axis = strip.geometry.height;
  const int64_t window_begin = begin * axis.stride - axis.padding_before;
  const int64_t window_end =
      (end - 1) * axis.stride - axis.padding_before + axis.span();
  const int64_t source_end = std::min(axis.input_extent, window_end);
  strip.source_begin = std::max<int64_t>(0, window_begin);
  if (source_end <= strip.source_begin) return {};
  axis.input_extent = source_end - strip.source_begin;
  axis.output_extent = end - begin;
  axis.padding_before = strip.source_begin - window_begin;
  axis.padding_after = window_end - source_end;
  return strip;
}

std::optional<ConvStrip> StripOfInput(const ConvGeometry& geometry,
                                      int64_t begin, int64_t end) {
  ConvStrip strip = {.geometry = geometry};
  WindowAxis& axis = strip.geometry.height;
  // The first and the last window that cover any of the rows.
  const int64_t first = begin + axis.padding_before - (axis.span() - 1);
  const int64_t source_end = std::min(
      axis.output_extent, (end - 1 + axis.padding_before) / axis.stride + 1);
  strip.source_begin = first <= 0 ? 0 : (first + axis.stride - 1) / axis.stride;
  axis.padding_before += begin - strip.source_begin * axis.stride;
  axis.input_extent = end - begin;
  axis.output_extent = source_end - strip.source_begin;
  const int64_t padding_after = (axis.output_extent - 1) * axis.stride +
                                axis.span() - axis.input_extent -
                                axis.padding_before;
  // Fewer rows than a stride may follow the last window.
  if (axis.output_extent < 1 || axis.padding_before < 0 ||
      padding_after <= -axis.stride) {
    return {};
  }
  axis.padding_after = std::max<int64_t>(0, padding_after);
  return strip;
}

}  // namespace

std::optional<ConvStrip> StripOf(const ConvGeometry& geometry, int64_t begin,
                                 int64_t end) {
  return geometry.part == ConvPart::kBackpropInput
             ? StripOfInput(geometry, begin, end)
             : StripOfResult(geometry, begin, end);
}

void WeightReorder::Init(const memory::desc& from, const memory::desc& to) {
  is_needed_ = from != to;
  if (!is_needed_) return;
  const dnnl::reorder::primitive_desc desc(OneDnnEngine(), from, OneDnnEngine(),
                                           to, UserScratchpad());
  call_ = OneDnnCall(dnnl::reorder(desc));
  call_.AddOperand(DNNL_ARG_FROM, from);
  call_.AddOperand(DNNL_ARG_TO, to);
  if (desc.scratchpad_desc().get_size() == 0) return;
  scratchpad_ = memory(desc.scratchpad_desc(), OneDnnEngine());
  const int operand =
      call_.AddOperand(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc());
  call_.SetData(operand, scratchpad_.get_data_handle());
}

absl::Status WeightReorder::Run(const void* from, void* to) {
  call_.SetData(0, from);
  call_.SetData(1, to);
  return call_.Run();
}

}  // namespace muster::internal
