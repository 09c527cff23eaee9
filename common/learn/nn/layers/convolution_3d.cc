#include "common/learn/nn/layers/convolution_3d.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/convolve_3d.h"
#include "common/learn/nn/image_input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/convolution.h"

namespace muster {
namespace {

using internal::AtLeastZero;
using internal::Divides;

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
                      options_.kernel_regularizer, options_.kernel_constraint);
  visitor.VisitWeight("bias", options_.bias_initializer,
                      options_.bias_regularizer, options_.bias_constraint);
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
      {.regularizer = options_.kernel_regularizer,
       .constraint = options_.kernel_constraint});
  if (options_.use_bias) {
    bias_ =
        AddWeight("bias", {AtLeastZero(filters_)}, options_.bias_initializer,
                  {.regularizer = options_.bias_regularizer,
                   .constraint = options_.bias_constraint});
  }
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
  const internal::Convolve3DOptions options = {
      .strides = options_.strides,
      .dilations = options_.dilation_rate,
      .padding = options_.padding,
      .groups = options_.groups};
  const bool has_depth =
      is_valid && x.shape().rank() == 5 &&
      internal::HasKnownExtents(x.shape()) &&
      internal::OutputDepth(x.shape().dim(1), kernel_size_.depth, options) >= 1;
  x = internal::ToFloatImage(
      x, 5, absl::StrCat("Conv3D ", name()), has_depth,
      absl::StrCat("expected filters, kernel_size, strides and dilation_rate "
                   "of at least 1, groups that divide filters and channels, "
                   "and volumes of known extents that are as deep as the "
                   "kernel; there are ",
                   filters_, " filters, ", options_.groups, " groups and ",
                   channels, " channels"));
  if (!x.ok()) return x;
  Value y = internal::Convolve3D(x, kernel_, options);
  if (!y.ok()) return y;
  if (options_.use_bias) y = y + bias_;
  return Activate(options_.activation, y);
}

LayerPtr Conv3D(int64_t filters, Size3D kernel_size,
                const Conv3DLayerOptions& options) {
  return std::make_shared<Conv3DLayer>(filters, kernel_size, options);
}

}  // namespace muster
