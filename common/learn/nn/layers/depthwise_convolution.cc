#include "common/learn/nn/layers/depthwise_convolution.h"

#include <algorithm>
#include <cstdint>
#include <memory>

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

constexpr char kDepthwiseExpectation[] =
    "expected filters, kernel_size, strides, dilation_rate and "
    "depth_multiplier of at least 1";

// Returns the kernel's shape. Call() reports extents below 1.
Shape DepthwiseKernelShape(Size2D kernel_size, int64_t channels,
                           int64_t depth_multiplier) {
  return {std::max<int64_t>(kernel_size.height, 0),
          std::max<int64_t>(kernel_size.width, 0), channels,
          std::max<int64_t>(depth_multiplier, 0)};
}

int64_t Times(int64_t channels, int64_t depth_multiplier) {
  return channels == Shape::kUnknown
             ? channels
             : channels * std::max<int64_t>(depth_multiplier, 0);
}

int64_t Least(Size2D kernel_size, const auto& options) {
  return std::min({kernel_size.height, kernel_size.width,
                   options.strides.height, options.strides.width,
                   options.dilation_rate.height, options.dilation_rate.width,
                   options.depth_multiplier});
}

DepthwiseConv2DOptions ToOpOptions(const auto& options) {
  return {.strides = options.strides.extents(),
          .dilations = options.dilation_rate.extents(),
          .padding = ToPadding2D(options.padding)};
}

// Convolves a sequence as an image of height 1. `kernel` is [size, channels,
// multiplier].
Value DepthwiseConv1D(Value x, Value kernel, const auto& options) {
  return Squeeze(DepthwiseConv2D(ExpandDims(x, 1), ExpandDims(kernel, 0),
                                 {.strides = {1, options.strides},
                                  .dilations = {1, options.dilation_rate},
                                  .padding = ToPadding2D(options.padding)}),
                 {1});
}

int64_t Least(int64_t kernel_size, const auto& options) {
  return std::min({kernel_size, options.strides, options.dilation_rate,
                   options.depth_multiplier});
}

// Visits the hyperparameters that all layers have.
template <typename Size, typename Options>
void VisitDepthwise(ConfigVisitor& visitor, Size& kernel_size,
                    Options& options) {
  VisitSize(visitor, "kernel_size", kernel_size);
  VisitSize(visitor, "strides", options.strides);
  VisitPadding(visitor, options.padding);
  VisitSize(visitor, "dilation_rate", options.dilation_rate);
  visitor.Visit("depth_multiplier", options.depth_multiplier);
  visitor.Visit("activation", options.activation);
  visitor.Visit("use_bias", options.use_bias);
  visitor.VisitWeight("depthwise", options.depthwise_initializer,
                      options.depthwise_regularizer,
                      options.depthwise_constraint);
  visitor.VisitWeight("bias", options.bias_initializer,
                      options.bias_regularizer, options.bias_constraint);
}

}  // namespace

DepthwiseConv2DLayer::DepthwiseConv2DLayer(
    Size2D kernel_size, const DepthwiseConv2DLayerOptions& options)
    : Layer(options.name), kernel_size_(kernel_size), options_(options) {}

void DepthwiseConv2DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitDepthwise(visitor, kernel_size_, options_);
}

void DepthwiseConv2DLayer::Build(const Shape& input) {
  const int64_t channels = internal::ChannelCount(input);
  kernel_ = AddWeight(
      "kernel",
      DepthwiseKernelShape(kernel_size_, channels, options_.depth_multiplier),
      options_.depthwise_initializer,
      {.regularizer = options_.depthwise_regularizer,
       .constraint = options_.depthwise_constraint});
  if (options_.use_bias) {
    bias_ = AddWeight("bias", {Times(channels, options_.depth_multiplier)},
                      options_.bias_initializer,
                      {.regularizer = options_.bias_regularizer,
                       .constraint = options_.bias_constraint});
  }
}

Value DepthwiseConv2DLayer::Call(Value x, const CallContext&) {
  x = internal::ToFloatImage(x, 4, absl::StrCat("DepthwiseConv2D ", name()),
                             Least(kernel_size_, options_) >= 1,
                             kDepthwiseExpectation);
  if (!x.ok()) return x;
  Value y = DepthwiseConv2D(x, kernel_, ToOpOptions(options_));
  if (options_.use_bias) y = y + bias_;
  return Activate(options_.activation, y);
}

LayerPtr DepthwiseConv2D(Size2D kernel_size,
                         const DepthwiseConv2DLayerOptions& options) {
  return std::make_shared<DepthwiseConv2DLayer>(kernel_size, options);
}

SeparableConv2DLayer::SeparableConv2DLayer(
    int64_t filters, Size2D kernel_size,
    const SeparableConv2DLayerOptions& options)
    : Layer(options.name),
      filters_(filters),
      kernel_size_(kernel_size),
      options_(options) {}

void SeparableConv2DLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitPositive("filters", filters_);
  VisitDepthwise(visitor, kernel_size_, options_);
  visitor.VisitWeight("pointwise", options_.pointwise_initializer,
                      options_.pointwise_regularizer,
                      options_.pointwise_constraint);
}

void SeparableConv2DLayer::Build(const Shape& input) {
  const int64_t channels = internal::ChannelCount(input);
  const int64_t filters = std::max<int64_t>(filters_, 0);
  depthwise_kernel_ = AddWeight(
      "depthwise_kernel",
      DepthwiseKernelShape(kernel_size_, channels, options_.depth_multiplier),
      options_.depthwise_initializer,
      {.regularizer = options_.depthwise_regularizer,
       .constraint = options_.depthwise_constraint});
  pointwise_kernel_ =
      AddWeight("pointwise_kernel",
                {1, 1, Times(channels, options_.depth_multiplier), filters},
                options_.pointwise_initializer,
                {.regularizer = options_.pointwise_regularizer,
                 .constraint = options_.pointwise_constraint});
  if (options_.use_bias) {
    bias_ = AddWeight("bias", {filters}, options_.bias_initializer,
                      {.regularizer = options_.bias_regularizer,
                       .constraint = options_.bias_constraint});
  }
}

Value SeparableConv2DLayer::Call(Value x, const CallContext&) {
  const int64_t least = std::min(filters_, Least(kernel_size_, options_));
  x = internal::ToFloatImage(x, 4, absl::StrCat("SeparableConv2D ", name()),
                             least >= 1, kDepthwiseExpectation);
  if (!x.ok()) return x;
  Value y = DepthwiseConv2D(x, depthwise_kernel_, ToOpOptions(options_));
  y = Conv2D(y, pointwise_kernel_);
  if (options_.use_bias) y = y + bias_;
  return Activate(options_.activation, y);
}

LayerPtr SeparableConv2D(int64_t filters, Size2D kernel_size,
                         const SeparableConv2DLayerOptions& options) {
  return std::make_shared<SeparableConv2DLayer>(filters, kernel_size, options);
}

DepthwiseConv1DLayer::DepthwiseConv1DLayer(
    int64_t kernel_size, const DepthwiseConv1DLayerOptions& options)
    : Layer(options.name), kernel_size_(kernel_size), options_(options) {}

void DepthwiseConv1DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitDepthwise(visitor, kernel_size_, options_);
}

void DepthwiseConv1DLayer::Build(const Shape& input) {
  const int64_t channels = internal::ChannelCount(input);
  kernel_ = AddWeight("kernel",
                      {std::max<int64_t>(kernel_size_, 0), channels,
                       std::max<int64_t>(options_.depth_multiplier, 0)},
                      options_.depthwise_initializer,
                      {.regularizer = options_.depthwise_regularizer,
                       .constraint = options_.depthwise_constraint});
  if (options_.use_bias) {
    bias_ = AddWeight("bias", {Times(channels, options_.depth_multiplier)},
                      options_.bias_initializer,
                      {.regularizer = options_.bias_regularizer,
                       .constraint = options_.bias_constraint});
  }
}

Value DepthwiseConv1DLayer::Call(Value x, const CallContext&) {
  x = internal::ToFloatImage(x, 3, absl::StrCat("DepthwiseConv1D ", name()),
                             Least(kernel_size_, options_) >= 1,
                             kDepthwiseExpectation);
  if (!x.ok()) return x;
  Value y = DepthwiseConv1D(x, kernel_, options_);
  if (options_.use_bias) y = y + bias_;
  return Activate(options_.activation, y);
}

LayerPtr DepthwiseConv1D(int64_t kernel_size,
                         const DepthwiseConv1DLayerOptions& options) {
  return std::make_shared<DepthwiseConv1DLayer>(kernel_size, options);
}

SeparableConv1DLayer::SeparableConv1DLayer(
    int64_t filters, int64_t kernel_size,
    const SeparableConv1DLayerOptions& options)
    : Layer(options.name),
      filters_(filters),
      kernel_size_(kernel_size),
      options_(options) {}

void SeparableConv1DLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitPositive("filters", filters_);
  VisitDepthwise(visitor, kernel_size_, options_);
  visitor.VisitWeight("pointwise", options_.pointwise_initializer,
                      options_.pointwise_regularizer,
                      options_.pointwise_constraint);
}

void SeparableConv1DLayer::Build(const Shape& input) {
  const int64_t channels = internal::ChannelCount(input);
  const int64_t filters = std::max<int64_t>(filters_, 0);
  depthwise_kernel_ =
      AddWeight("depthwise_kernel",
                {std::max<int64_t>(kernel_size_, 0), channels,
                 std::max<int64_t>(options_.depth_multiplier, 0)},
                options_.depthwise_initializer,
                {.regularizer = options_.depthwise_regularizer,
                 .constraint = options_.depthwise_constraint});
  pointwise_kernel_ =
      AddWeight("pointwise_kernel",
                {1, Times(channels, options_.depth_multiplier), filters},
                options_.pointwise_initializer,
                {.regularizer = options_.pointwise_regularizer,
                 .constraint = options_.pointwise_constraint});
  if (options_.use_bias) {
    bias_ = AddWeight("bias", {filters}, options_.bias_initializer,
                      {.regularizer = options_.bias_regularizer,
                       .constraint = options_.bias_constraint});
  }
}

Value SeparableConv1DLayer::Call(Value x, const CallContext&) {
  const int64_t least = std::min(filters_, Least(kernel_size_, options_));
  x = internal::ToFloatImage(x, 3, absl::StrCat("SeparableConv1D ", name()),
                             least >= 1, kDepthwiseExpectation);
  if (!x.ok()) return x;
  Value y = DepthwiseConv1D(x, depthwise_kernel_, options_);
  y = Squeeze(Conv2D(ExpandDims(y, 1), ExpandDims(pointwise_kernel_, 0)), {1});
  if (options_.use_bias) y = y + bias_;
  return Activate(options_.activation, y);
}

LayerPtr SeparableConv1D(int64_t filters, int64_t kernel_size,
                         const SeparableConv1DLayerOptions& options) {
  return std::make_shared<SeparableConv1DLayer>(filters, kernel_size, options);
}

}  // namespace muster
