#include "common/learn/nn/convolution_3d.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image_input.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

// Clamps invalid extents for the kernel's shape. Call() reports them.
int64_t AtLeastZero(int64_t extent) { return std::max<int64_t>(extent, 0); }

bool Divides(int64_t divisor, int64_t number) {
  return divisor > 0 && number % divisor == 0;
}

}  // namespace

Conv3DLayer::Conv3DLayer(int64_t filters, Size3D kernel_size,
                         const Conv3DLayerOptions& options)
    : Layer(options.name),
      filters_(filters),
      kernel_size_(kernel_size),
      options_(options) {}

void Conv3DLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitPositive("filters", filters_);
  VisitSize(visitor, "kernel_size", kernel_size_);
  VisitSize(visitor, "strides", options_.strides);
  VisitPadding(visitor, options_.padding);
  VisitSize(visitor, "dilation_rate", options_.dilation_rate);
  visitor.Visit("groups", options_.groups);
  visitor.Visit("activation", options_.activation);
  visitor.Visit("use_bias", options_.use_bias);
  visitor.VisitWeight("kernel", options_.kernel_initializer,
                      options_.kernel_regularizer);
  visitor.VisitWeight("bias", options_.bias_initializer,
                      options_.bias_regularizer);
}

void Conv3DLayer::Build(const Shape& input) {
  const int64_t channels = internal::ChannelCount(input);
  const int64_t groups = std::max<int64_t>(options_.groups, 1);
  kernel_ = AddWeight(
      "kernel",
      {AtLeastZero(kernel_size_.depth), AtLeastZero(kernel_size_.height),
       AtLeastZero(kernel_size_.width),
       channels == Shape::kUnknown ? channels : channels / groups,
       AtLeastZero(filters_)},
      options_.kernel_initializer,
      {.regularizer = options_.kernel_regularizer});
  if (options_.use_bias) {
    bias_ =
        AddWeight("bias", {AtLeastZero(filters_)}, options_.bias_initializer,
                  {.regularizer = options_.bias_regularizer});
  }
}

int64_t Conv3DLayer::OutputDepth(int64_t depth) const {
  const int64_t stride = options_.strides.depth;
  if (options_.padding == Padding::kSame) return (depth + stride - 1) / stride;
  const int64_t reach =
      (kernel_size_.depth - 1) * options_.dilation_rate.depth + 1;
  return depth < reach ? 0 : (depth - reach) / stride + 1;
}

Value Conv3DLayer::SlicesAsChannels(Value x, int64_t output_depth) const {
  const Shape input = x.shape();
  const int64_t depth = input.dim(1);
  const int64_t channels = input.dim(4);
  const int64_t stride = options_.strides.depth;
  const int64_t dilation = options_.dilation_rate.depth;
  // Of all slices, each with `stride` positions for each of the output.
  const int64_t extent =
      (kernel_size_.depth - 1) * dilation + output_depth * stride;
  const int64_t padding =
      std::max<int64_t>(0, (output_depth - 1) * stride +
                               (kernel_size_.depth - 1) * dilation + 1 - depth);
  const int64_t before = padding / 2;
  const int64_t after = std::max<int64_t>(0, extent - depth - before);
  x = Pad(x, {0, 0, before, after, 0, 0, 0, 0, 0, 0});
  std::vector<Value> slices;
  for (int64_t i = 0; i < kernel_size_.depth; ++i) {
    Value slice = Slice(x, {0, i * dilation, 0, 0, 0},
                        {-1, output_depth * stride, -1, -1, -1});
    if (stride > 1) {
      slice = Reshape(slice, {-1, output_depth, stride, input.dim(2),
                              input.dim(3), channels});
      slice = Slice(slice, {0, 0, 0, 0, 0, 0}, {-1, -1, 1, -1, -1, -1});
    }
    slices.push_back(
        Reshape(slice, {-1, input.dim(2), input.dim(3), options_.groups,
                        channels / options_.groups}));
  }
  // Side by side within each group.
  return Reshape(Concat(slices, 4), {-1, input.dim(2), input.dim(3),
                                     kernel_size_.depth * channels});
}

Value Conv3DLayer::KernelOfSlices() const {
  const Value kernel = kernel_;
  if (!kernel.ok()) return kernel;
  return Reshape(Transpose(kernel, {1, 2, 0, 3, 4}),
                 {kernel_size_.height, kernel_size_.width,
                  kernel_size_.depth * kernel.shape().dim(3), filters_});
}

Value Conv3DLayer::Call(Value x, const CallContext&) {
  const int64_t channels = internal::ChannelCount(x.shape());
  const auto least = [](Size3D size) {
    return std::min({size.depth, size.height, size.width});
  };
  const bool is_valid =
      std::min({filters_, least(kernel_size_), least(options_.strides),
                least(options_.dilation_rate)}) >= 1 &&
      Divides(options_.groups, filters_) && Divides(options_.groups, channels);
  const bool has_depth = is_valid && x.shape().rank() == 5 &&
                         internal::HasKnownExtents(x.shape()) &&
                         OutputDepth(x.shape().dim(1)) >= 1;
  x = internal::ToFloatImage(
      x, 5, absl::StrCat("Conv3D ", name()), has_depth,
      absl::StrCat("expected filters, kernel_size, strides and dilation_rate "
                   "of at least 1, groups that divide filters and channels, "
                   "and volumes of known extents that are as deep as the "
                   "kernel; there are ",
                   filters_, " filters, ", options_.groups, " groups and ",
                   channels, " channels"));
  if (!x.ok()) return x;
  const int64_t output_depth = OutputDepth(x.shape().dim(1));
  const Value images =
      Conv2D(SlicesAsChannels(x, output_depth), KernelOfSlices(),
             {.strides = {options_.strides.height, options_.strides.width},
              .dilations = {options_.dilation_rate.height,
                            options_.dilation_rate.width},
              .padding = ToPadding2D(options_.padding),
              .groups = options_.groups});
  if (!images.ok()) return images;
  Value y = Reshape(images, {-1, output_depth, images.shape().dim(1),
                             images.shape().dim(2), filters_});
  if (options_.use_bias) y = y + bias_;
  return Activate(options_.activation, y);
}

LayerPtr Conv3D(int64_t filters, Size3D kernel_size,
                const Conv3DLayerOptions& options) {
  return std::make_shared<Conv3DLayer>(filters, kernel_size, options);
}

}  // namespace muster
