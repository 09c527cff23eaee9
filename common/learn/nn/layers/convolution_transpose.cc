#include "common/learn/nn/layers/convolution_transpose.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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
#include "common/learn/nn/window.h"

namespace muster {
namespace {

using internal::AtLeastZero;

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

// Returns the spatial axes of a layer.
template <typename Size>
std::vector<Axis> AxesOf(const Size& kernel_size,
                         const ConvTransposeOptions<Size>& options) {
  std::vector<Axis> axes;
  for (int i = 0; i < kAxisCount<Size>; ++i) {
    axes.push_back({.kernel_size = ExtentsOf(kernel_size)[i],
                    .stride = ExtentsOf(options.strides)[i],
                    .dilation_rate = ExtentsOf(options.dilation_rate)[i],
                    .output_padding = std::nullopt});
    if (options.output_padding.has_value()) {
      axes.back().output_padding = ExtentsOf(*options.output_padding)[i];
    }
  }
  return axes;
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

// Convolves sequences, images or volumes, which have one of `axes` for each
// spatial axis. Returns a poisoned value, after reporting the reason, if an
// extent is unknown.
Value ConvolveTransposed(Value x, Value kernel, const std::vector<Axis>& axes,
                         Padding padding) {
  if (axes.size() == 2) {
    return Transposed(x, kernel, {axes[0], axes[1]}, padding);
  }
  if (axes.size() == 1) {
    // A sequence is an image of height 1.
    const Value y = Transposed(ExpandDims(x, 1), ExpandDims(kernel, 0),
                               {Axis{1, 1, 1, std::nullopt}, axes[0]}, padding);
    return y.ok() ? Squeeze(y, {1}) : y;
  }
  const Shape input = x.shape();
  const Shape shape = kernel.shape();
  const int64_t filters = shape.dim(3);
  const Value slices = Transposed(
      Reshape(x, {-1, input.dim(2), input.dim(3), input.dim(4)}),
      Reshape(
          Transpose(kernel, {1, 2, 0, 3, 4}),
          {shape.dim(1), shape.dim(2), shape.dim(0) * filters, shape.dim(4)}),
      {axes[1], axes[2]}, padding);
  if (!slices.ok()) return slices;
  return AddedAlongDepth(
      Reshape(slices, {-1, input.dim(1), slices.shape().dim(1),
                       slices.shape().dim(2), slices.shape().dim(3)}),
      axes[0], padding, filters);
}

template <typename Size>
class ConvTransposeLayer : public Layer {
 public:
  ConvTransposeLayer(int64_t filters, Size kernel_size,
                     const ConvTransposeOptions<Size>& options)
      : Layer(options.name),
        filters_(filters),
        kernel_size_(kernel_size),
        options_(options) {}

  std::string kind() const override {
    return absl::StrCat("Conv", kAxisCount<Size>, "DTranspose");
  }

  void VisitConfig(ConfigVisitor& visitor) override {
    visitor.VisitPositive("filters", filters_);
    VisitSize(visitor, "kernel_size", kernel_size_);
    VisitSize(visitor, "strides", options_.strides);
    VisitPadding(visitor, options_.padding);
    VisitOptionalSize(visitor,
                      Described("output_padding",
                                "Added to the extents of the output. Absent: "
                                "extents * strides with SAME."),
                      options_.output_padding);
    VisitSize(visitor, "dilation_rate", options_.dilation_rate);
    visitor.Visit("activation", options_.activation);
    visitor.Visit("use_bias", options_.use_bias);
    visitor.VisitWeight("kernel", options_.kernel_initializer,
                        options_.kernel_regularizer,
                        options_.kernel_constraint);
    visitor.VisitWeight("bias", options_.bias_initializer,
                        options_.bias_regularizer, options_.bias_constraint);
  }

 protected:
  void Build(const Shape& input) override {
    kernel_ = AddWeight(
        "kernel",
        internal::KernelShape(kernel_size_, {AtLeastZero(filters_),
                                             internal::ChannelCount(input)}),
        options_.kernel_initializer,
        {.regularizer = options_.kernel_regularizer,
         .constraint = options_.kernel_constraint});
    if (!options_.use_bias) return;
    bias_ =
        AddWeight("bias", {AtLeastZero(filters_)}, options_.bias_initializer,
                  {.regularizer = options_.bias_regularizer,
                   .constraint = options_.bias_constraint});
  }

  Value Call(Value x, const CallContext&) override {
    constexpr bool kAreVolumes = kAxisCount<Size> == 3;
    const std::vector<Axis> axes = AxesOf(kernel_size_, options_);
    const bool is_valid =
        filters_ >= 1 && std::all_of(axes.begin(), axes.end(), IsValid) &&
        (!kAreVolumes || internal::HasKnownExtents(x.shape()));
    x = internal::ToFloatImage(
        x, kAxisCount<Size> + 2, absl::StrCat(kind(), " ", name()), is_valid,
        absl::StrCat(
            "expected filters, kernel_size, strides and dilation_rate of at "
            "least 1, and output_padding of at least 0",
            kAreVolumes ? ", and known extents but the batch's" : ""));
    if (!x.ok()) return x;
    Value y = ConvolveTransposed(x, kernel_, axes, options_.padding);
    if (!y.ok()) return y;
    if (options_.use_bias) y = y + bias_;
    return Activate(options_.activation, y);
  }

 private:
  int64_t filters_;
  Size kernel_size_;
  ConvTransposeOptions<Size> options_;
  Weight kernel_;
  Weight bias_;
};

}  // namespace

LayerPtr Conv1DTranspose(int64_t filters, int64_t kernel_size,
                         const Conv1DTransposeOptions& options) {
  return std::make_shared<ConvTransposeLayer<int64_t>>(filters, kernel_size,
                                                       options);
}

LayerPtr Conv2DTranspose(int64_t filters, Size2D kernel_size,
                         const Conv2DTransposeOptions& options) {
  return std::make_shared<ConvTransposeLayer<Size2D>>(filters, kernel_size,
                                                      options);
}

LayerPtr Conv3DTranspose(int64_t filters, Size3D kernel_size,
                         const Conv3DTransposeOptions& options) {
  return std::make_shared<ConvTransposeLayer<Size3D>>(filters, kernel_size,
                                                      options);
}

}  // namespace muster
