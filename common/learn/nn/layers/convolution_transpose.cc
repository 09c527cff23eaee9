#include "common/learn/nn/layers/convolution_transpose.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image_input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/convolution.h"

namespace muster {
namespace {

using internal::AtLeastZero;

constexpr char kTransposeExpectation[] =
    "expected filters, kernel_size, strides and dilation_rate of at least 1, "
    "and output_padding of at least 0";

// One spatial axis.
struct Axis {
  int64_t kernel_size;
  int64_t stride;
  int64_t dilation_rate;
  std::optional<int64_t> output_padding;
};

bool IsValid(const Axis& axis) {
  return std::min({axis.kernel_size, axis.stride, axis.dilation_rate}) >= 1 &&
         axis.output_padding.value_or(0) >= 0;
}

int64_t OutputExtent(int64_t extent, const Axis& axis, Padding padding) {
  const int64_t window = (axis.kernel_size - 1) * axis.dilation_rate + 1;
  const int64_t before_last = (extent - 1) * axis.stride;
  if (padding == Padding::kSame) {
    return axis.output_padding.has_value()
               ? before_last + window % 2 + *axis.output_padding
               : extent * axis.stride;
  }
  return axis.output_padding.has_value()
             ? before_last + window + *axis.output_padding
             : before_last + std::max(window, axis.stride);
}

// Convolves images. Returns a poisoned value, after reporting the reason, if an
// extent is unknown.
Value Transposed(Value x, Value kernel, const std::array<Axis, 2>& axes,
                 Padding padding) {
  std::array<int64_t, 2> extents;
  for (int i = 0; i < 2; ++i) {
    const int64_t extent = x.shape().dim(1 + i);
    if (extent == Shape::kUnknown) {
      x.builder()->ReportError(absl::InvalidArgumentError(
          absl::StrCat("a transposed convolution needs known extents but the "
                       "batch's; the input is ",
                       x.type().ToString())));
      return Value();
    }
    extents[i] = OutputExtent(extent, axes[i], padding);
  }
  // Only the type of the output counts. Its batch may be unknown while tracing.
  const int64_t filters = kernel.shape().dim(2);
  const Value like =
      Pad(Slice(x, {0, 0, 0, 0}, {-1, 1, 1, 1}),
          {0, 0, 0, extents[0] - 1, 0, extents[1] - 1, 0, filters - 1});
  return Conv2DBackpropInput(
      x, kernel, StopGradient(like),
      {.strides = {axes[0].stride, axes[1].stride},
       .dilations = {axes[0].dilation_rate, axes[1].dilation_rate},
       .padding = ToPadding2D(padding)});
}

// Adds up along depth what each slice of the kernel has made of each slice of
// the input. `x` is [batch, depth, height, width, kernel size * filters].
Value AddedAlongDepth(Value x, const Axis& axis, Padding padding,
                      int64_t filters) {
  const std::vector<int64_t> shape(x.shape().dims().begin(),
                                   x.shape().dims().end());
  const int64_t depth = shape[1];
  const int64_t extent = OutputExtent(depth, axis, padding);
  const int64_t window = (axis.kernel_size - 1) * axis.dilation_rate + 1;
  const int64_t surplus =
      padding == Padding::kSame
          ? std::max<int64_t>(0, (depth - 1) * axis.stride + window - extent)
          : 0;
  Value sum;
  for (int64_t k = 0; k < axis.kernel_size; ++k) {
    // Slice d of the input belongs to d * stride + shift of the output.
    const int64_t shift = k * axis.dilation_rate - surplus / 2;
    Value y = Slice(x, {0, 0, 0, 0, k * filters}, {-1, -1, -1, -1, filters});
    if (axis.stride > 1) {
      y = Pad(ExpandDims(y, 2),
              {0, 0, 0, 0, 0, axis.stride - 1, 0, 0, 0, 0, 0, 0});
      y = Reshape(y, {-1, depth * axis.stride, shape[2], shape[3], filters});
    }
    const int64_t before = std::max<int64_t>(0, shift);
    const int64_t after =
        std::max<int64_t>(0, extent - depth * axis.stride - shift);
    y = Pad(y, {0, 0, before, after, 0, 0, 0, 0, 0, 0});
    y = Slice(y, {0, before - shift, 0, 0, 0}, {-1, extent, -1, -1, -1});
    sum = k == 0 ? y : sum + y;
  }
  return sum;
}

// The layers differ only in the number of spatial axes.
template <typename Size, typename Options>
void VisitTranspose(ConfigVisitor& visitor, int64_t& filters, Size& kernel_size,
                    Options& options) {
  visitor.VisitPositive("filters", filters);
  VisitSize(visitor, "kernel_size", kernel_size);
  VisitSize(visitor, "strides", options.strides);
  VisitPadding(visitor, options.padding);
  VisitOptionalSize(visitor,
                    Described("output_padding",
                              "Added to the extents of the output. Absent: "
                              "extents * strides with SAME."),
                    options.output_padding);
  VisitSize(visitor, "dilation_rate", options.dilation_rate);
  visitor.Visit("activation", options.activation);
  visitor.Visit("use_bias", options.use_bias);
  visitor.VisitWeight("kernel", options.kernel_initializer,
                      options.kernel_regularizer, options.kernel_constraint);
  visitor.VisitWeight("bias", options.bias_initializer,
                      options.bias_regularizer, options.bias_constraint);
}

}  // namespace

Conv2DTransposeLayer::Conv2DTransposeLayer(
    int64_t filters, Size2D kernel_size, const Conv2DTransposeOptions& options)
    : Layer(options.name),
      filters_(filters),
      kernel_size_(kernel_size),
      options_(options) {}

void Conv2DTransposeLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitTranspose(visitor, filters_, kernel_size_, options_);
}

void Conv2DTransposeLayer::Build(const Shape& input) {
  kernel_ = AddWeight(
      "kernel",
      {AtLeastZero(kernel_size_.height), AtLeastZero(kernel_size_.width),
       AtLeastZero(filters_), internal::ChannelCount(input)},
      options_.kernel_initializer,
      {.regularizer = options_.kernel_regularizer,
       .constraint = options_.kernel_constraint});
  if (options_.use_bias) {
    bias_ =
        AddWeight("bias", {AtLeastZero(filters_)}, options_.bias_initializer,
                  {.regularizer = options_.bias_regularizer,
                   .constraint = options_.bias_constraint});
  }
}

Value Conv2DTransposeLayer::Call(Value x, const CallContext&) {
  const std::optional<Size2D>& more = options_.output_padding;
  const std::array<Axis, 2> axes = {
      Axis{kernel_size_.height, options_.strides.height,
           options_.dilation_rate.height,
           more ? std::optional(more->height) : std::nullopt},
      Axis{kernel_size_.width, options_.strides.width,
           options_.dilation_rate.width,
           more ? std::optional(more->width) : std::nullopt}};
  x = internal::ToFloatImage(
      x, 4, absl::StrCat("Conv2DTranspose ", name()),
      filters_ >= 1 && IsValid(axes[0]) && IsValid(axes[1]),
      kTransposeExpectation);
  if (!x.ok()) return x;
  Value y = Transposed(x, kernel_, axes, options_.padding);
  if (!y.ok()) return y;
  if (options_.use_bias) y = y + bias_;
  return Activate(options_.activation, y);
}

LayerPtr Conv2DTranspose(int64_t filters, Size2D kernel_size,
                         const Conv2DTransposeOptions& options) {
  return std::make_shared<Conv2DTransposeLayer>(filters, kernel_size, options);
}

Conv1DTransposeLayer::Conv1DTransposeLayer(
    int64_t filters, int64_t kernel_size, const Conv1DTransposeOptions& options)
    : Layer(options.name),
      filters_(filters),
      kernel_size_(kernel_size),
      options_(options) {}

void Conv1DTransposeLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitTranspose(visitor, filters_, kernel_size_, options_);
}

void Conv1DTransposeLayer::Build(const Shape& input) {
  kernel_ = AddWeight("kernel",
                      {AtLeastZero(kernel_size_), AtLeastZero(filters_),
                       internal::ChannelCount(input)},
                      options_.kernel_initializer,
                      {.regularizer = options_.kernel_regularizer,
                       .constraint = options_.kernel_constraint});
  if (options_.use_bias) {
    bias_ =
        AddWeight("bias", {AtLeastZero(filters_)}, options_.bias_initializer,
                  {.regularizer = options_.bias_regularizer,
                   .constraint = options_.bias_constraint});
  }
}

Value Conv1DTransposeLayer::Call(Value x, const CallContext&) {
  // A sequence is an image of height 1.
  const std::array<Axis, 2> axes = {
      Axis{1, 1, 1, std::nullopt},
      Axis{kernel_size_, options_.strides, options_.dilation_rate,
           options_.output_padding}};
  x = internal::ToFloatImage(x, 3, absl::StrCat("Conv1DTranspose ", name()),
                             filters_ >= 1 && IsValid(axes[1]),
                             kTransposeExpectation);
  if (!x.ok()) return x;
  Value y = Transposed(ExpandDims(x, 1), ExpandDims(kernel_, 0), axes,
                       options_.padding);
  if (!y.ok()) return y;
  y = Squeeze(y, {1});
  if (options_.use_bias) y = y + bias_;
  return Activate(options_.activation, y);
}

LayerPtr Conv1DTranspose(int64_t filters, int64_t kernel_size,
                         const Conv1DTransposeOptions& options) {
  return std::make_shared<Conv1DTransposeLayer>(filters, kernel_size, options);
}

Conv3DTransposeLayer::Conv3DTransposeLayer(
    int64_t filters, Size3D kernel_size, const Conv3DTransposeOptions& options)
    : Layer(options.name),
      filters_(filters),
      kernel_size_(kernel_size),
      options_(options) {}

void Conv3DTransposeLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitTranspose(visitor, filters_, kernel_size_, options_);
}

void Conv3DTransposeLayer::Build(const Shape& input) {
  kernel_ = AddWeight(
      "kernel",
      {AtLeastZero(kernel_size_.depth), AtLeastZero(kernel_size_.height),
       AtLeastZero(kernel_size_.width), AtLeastZero(filters_),
       internal::ChannelCount(input)},
      options_.kernel_initializer,
      {.regularizer = options_.kernel_regularizer,
       .constraint = options_.kernel_constraint});
  if (options_.use_bias) {
    bias_ =
        AddWeight("bias", {AtLeastZero(filters_)}, options_.bias_initializer,
                  {.regularizer = options_.bias_regularizer,
                   .constraint = options_.bias_constraint});
  }
}

Value Conv3DTransposeLayer::Call(Value x, const CallContext&) {
  const std::optional<Size3D>& more = options_.output_padding;
  const Axis depth = {kernel_size_.depth, options_.strides.depth,
                      options_.dilation_rate.depth,
                      more ? std::optional(more->depth) : std::nullopt};
  const std::array<Axis, 2> axes = {
      Axis{kernel_size_.height, options_.strides.height,
           options_.dilation_rate.height,
           more ? std::optional(more->height) : std::nullopt},
      Axis{kernel_size_.width, options_.strides.width,
           options_.dilation_rate.width,
           more ? std::optional(more->width) : std::nullopt}};
  const bool is_valid = filters_ >= 1 && IsValid(depth) && IsValid(axes[0]) &&
                        IsValid(axes[1]) &&
                        internal::HasKnownExtents(x.shape());
  x = internal::ToFloatImage(
      x, 5, absl::StrCat("Conv3DTranspose ", name()), is_valid,
      absl::StrCat(kTransposeExpectation,
                   ", and known extents but the batch's"));
  if (!x.ok()) return x;
  const Shape input = x.shape();
  const int64_t channels = input.dim(4);
  const Value kernel = Reshape(Transpose(kernel_, {1, 2, 0, 3, 4}),
                               {kernel_size_.height, kernel_size_.width,
                                kernel_size_.depth * filters_, channels});
  const Value slices =
      Transposed(Reshape(x, {-1, input.dim(2), input.dim(3), channels}), kernel,
                 axes, options_.padding);
  if (!slices.ok()) return slices;
  Value y = AddedAlongDepth(
      Reshape(slices, {-1, input.dim(1), slices.shape().dim(1),
                       slices.shape().dim(2), slices.shape().dim(3)}),
      depth, options_.padding, filters_);
  if (options_.use_bias) y = y + bias_;
  return Activate(options_.activation, y);
}

LayerPtr Conv3DTranspose(int64_t filters, Size3D kernel_size,
                         const Conv3DTransposeOptions& options) {
  return std::make_shared<Conv3DTransposeLayer>(filters, kernel_size, options);
}

}  // namespace muster
