#include "common/learn/nn/layers/depthwise_convolution.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

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

constexpr char kDepthwiseExpectation[] =
    "expected filters, kernel_size, strides, dilation_rate and "
    "depth_multiplier of at least 1";

// Returns the number of channels after a depthwise convolution.
int64_t DepthwiseChannels(int64_t channels, int64_t depth_multiplier) {
  return channels == Shape::kUnknown ? channels
                                     : channels * AtLeastZero(depth_multiplier);
}

template <typename Size>
bool AreExtentsValid(const Size& kernel_size, const auto& options) {
  return std::min({SmallestExtent(kernel_size), SmallestExtent(options.strides),
                   SmallestExtent(options.dilation_rate),
                   options.depth_multiplier}) >= 1;
}

// Each DepthwiseConvolve() convolves `x` with the kernel [size..., channels,
// multiplier], and each PointwiseConvolve() with [1..., channels, filters].

Value DepthwiseConvolve(Value x, Value kernel, int64_t strides,
                        int64_t dilation_rate, Padding2D padding) {
  // As an image of height 1.
  return Squeeze(DepthwiseConv2D(ExpandDims(x, 1), ExpandDims(kernel, 0),
                                 {.strides = {1, strides},
                                  .dilations = {1, dilation_rate},
                                  .padding = padding}),
                 {1});
}

Value DepthwiseConvolve(Value x, Value kernel, Size2D strides,
                        Size2D dilation_rate, Padding2D padding) {
  return DepthwiseConv2D(x, kernel,
                         {.strides = strides.extents(),
                          .dilations = dilation_rate.extents(),
                          .padding = padding});
}

template <int kAxes>
Value PointwiseConvolve(Value x, Value kernel) {
  if constexpr (kAxes == 2) return Conv2D(x, kernel);
  return Squeeze(Conv2D(ExpandDims(x, 1), ExpandDims(kernel, 0)), {1});
}

// Visits the hyperparameters that all layers have.
template <typename Size>
void VisitDepthwise(ConfigVisitor& visitor, Size& kernel_size, auto& options) {
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

template <typename Size>
class DepthwiseConvLayer : public Layer {
 public:
  DepthwiseConvLayer(Size kernel_size,
                     const DepthwiseConvLayerOptions<Size>& options)
      : Layer(options.name), kernel_size_(kernel_size), options_(options) {}

  std::string kind() const override {
    return absl::StrCat("DepthwiseConv", kAxisCount<Size>, "D");
  }

  void VisitConfig(ConfigVisitor& visitor) override {
    VisitDepthwise(visitor, kernel_size_, options_);
  }

 protected:
  void Build(const Shape& input) override {
    const int64_t channels = internal::ChannelCount(input);
    kernel_ = AddWeight(
        "kernel",
        internal::KernelShape(
            kernel_size_, {channels, AtLeastZero(options_.depth_multiplier)}),
        options_.depthwise_initializer,
        {.regularizer = options_.depthwise_regularizer,
         .constraint = options_.depthwise_constraint});
    if (!options_.use_bias) return;
    bias_ = AddWeight("bias",
                      {DepthwiseChannels(channels, options_.depth_multiplier)},
                      options_.bias_initializer,
                      {.regularizer = options_.bias_regularizer,
                       .constraint = options_.bias_constraint});
  }

  Value Call(Value x, const CallContext&) override {
    x = internal::ToFloatImage(
        x, kAxisCount<Size> + 2, absl::StrCat(kind(), " ", name()),
        AreExtentsValid(kernel_size_, options_), kDepthwiseExpectation);
    if (!x.ok()) return x;
    Value y =
        DepthwiseConvolve(x, kernel_, options_.strides, options_.dilation_rate,
                          ToPadding2D(options_.padding));
    if (options_.use_bias) y = y + bias_;
    return Activate(options_.activation, y);
  }

 private:
  Size kernel_size_;
  DepthwiseConvLayerOptions<Size> options_;
  Weight kernel_;
  Weight bias_;
};

template <typename Size>
class SeparableConvLayer : public Layer {
 public:
  SeparableConvLayer(int64_t filters, Size kernel_size,
                     const SeparableConvLayerOptions<Size>& options)
      : Layer(options.name),
        filters_(filters),
        kernel_size_(kernel_size),
        options_(options) {}

  std::string kind() const override {
    return absl::StrCat("SeparableConv", kAxisCount<Size>, "D");
  }

  void VisitConfig(ConfigVisitor& visitor) override {
    visitor.VisitPositive("filters", filters_);
    VisitDepthwise(visitor, kernel_size_, options_);
    visitor.VisitWeight("pointwise", options_.pointwise_initializer,
                        options_.pointwise_regularizer,
                        options_.pointwise_constraint);
  }

 protected:
  void Build(const Shape& input) override {
    const int64_t channels = internal::ChannelCount(input);
    const int64_t filters = AtLeastZero(filters_);
    depthwise_kernel_ = AddWeight(
        "depthwise_kernel",
        internal::KernelShape(
            kernel_size_, {channels, AtLeastZero(options_.depth_multiplier)}),
        options_.depthwise_initializer,
        {.regularizer = options_.depthwise_regularizer,
         .constraint = options_.depthwise_constraint});
    pointwise_kernel_ = AddWeight(
        "pointwise_kernel",
        internal::KernelShape(
            Size(1),
            {DepthwiseChannels(channels, options_.depth_multiplier), filters}),
        options_.pointwise_initializer,
        {.regularizer = options_.pointwise_regularizer,
         .constraint = options_.pointwise_constraint});
    if (!options_.use_bias) return;
    bias_ = AddWeight("bias", {filters}, options_.bias_initializer,
                      {.regularizer = options_.bias_regularizer,
                       .constraint = options_.bias_constraint});
  }

  Value Call(Value x, const CallContext&) override {
    x = internal::ToFloatImage(
        x, kAxisCount<Size> + 2, absl::StrCat(kind(), " ", name()),
        filters_ >= 1 && AreExtentsValid(kernel_size_, options_),
        kDepthwiseExpectation);
    if (!x.ok()) return x;
    Value y = DepthwiseConvolve(x, depthwise_kernel_, options_.strides,
                                options_.dilation_rate,
                                ToPadding2D(options_.padding));
    y = PointwiseConvolve<kAxisCount<Size>>(y, pointwise_kernel_);
    if (options_.use_bias) y = y + bias_;
    return Activate(options_.activation, y);
  }

 private:
  int64_t filters_;
  Size kernel_size_;
  SeparableConvLayerOptions<Size> options_;
  Weight depthwise_kernel_;
  Weight pointwise_kernel_;
  Weight bias_;
};

}  // namespace

LayerPtr DepthwiseConv1D(int64_t kernel_size,
                         const DepthwiseConv1DLayerOptions& options) {
  return std::make_shared<DepthwiseConvLayer<int64_t>>(kernel_size, options);
}

LayerPtr DepthwiseConv2D(Size2D kernel_size,
                         const DepthwiseConv2DLayerOptions& options) {
  return std::make_shared<DepthwiseConvLayer<Size2D>>(kernel_size, options);
}

LayerPtr SeparableConv1D(int64_t filters, int64_t kernel_size,
                         const SeparableConv1DLayerOptions& options) {
  return std::make_shared<SeparableConvLayer<int64_t>>(filters, kernel_size,
                                                       options);
}

LayerPtr SeparableConv2D(int64_t filters, Size2D kernel_size,
                         const SeparableConv2DLayerOptions& options) {
  return std::make_shared<SeparableConvLayer<Size2D>>(filters, kernel_size,
                                                      options);
}

}  // namespace muster
