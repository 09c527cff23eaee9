#ifndef COMMON_LEARN_NN_DEPTHWISE_CONVOLUTION_H_
#define COMMON_LEARN_NN_DEPTHWISE_CONVOLUTION_H_

#include <cstdint>
#include <string>

#include "common/learn/nn/activations.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/window.h"
#include "proto/variable.pb.h"

// Convolutions of images [batch, height, width, channels] that see each channel
// by itself. Integers become float32.
namespace muster {

struct DepthwiseConv2DLayerOptions {
  Size2D strides = 1;
  Padding padding = Padding::kValid;
  // Output channels for each channel of the input.
  int64_t depth_multiplier = 1;
  Size2D dilation_rate = 1;
  Activation activation = Activation::kLinear;
  bool use_bias = true;
  proto::Initializer depthwise_initializer = GlorotUniform();
  proto::Initializer bias_initializer = Zeros();
  Regularizer depthwise_regularizer = {};
  Regularizer bias_regularizer = {};
  std::string name = "";
};

// y = activation(conv(x, kernel) + bias), channel by channel
//
// Input [batch, height, width, channels], output [batch, height', width',
// channels * depth_multiplier], with extents as of Conv2DLayer.
// Weights: kernel [kernel height, kernel width, channels, depth_multiplier],
// bias [channels * depth_multiplier] if `use_bias`.
//
// Source: keras.layers.DepthwiseConv2D.
class DepthwiseConv2DLayer : public Layer {
 public:
  DepthwiseConv2DLayer(Size2D kernel_size,
                       const DepthwiseConv2DLayerOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  Size2D kernel_size_;
  DepthwiseConv2DLayerOptions options_;
  Weight kernel_;
  Weight bias_;
};

// Equivalent to: keras.layers.DepthwiseConv2D.
LayerPtr DepthwiseConv2D(Size2D kernel_size,
                         const DepthwiseConv2DLayerOptions& options = {});

struct SeparableConv2DLayerOptions {
  Size2D strides = 1;
  Padding padding = Padding::kValid;
  Size2D dilation_rate = 1;
  int64_t depth_multiplier = 1;
  Activation activation = Activation::kLinear;
  bool use_bias = true;
  proto::Initializer depthwise_initializer = GlorotUniform();
  proto::Initializer pointwise_initializer = GlorotUniform();
  proto::Initializer bias_initializer = Zeros();
  Regularizer depthwise_regularizer = {};
  Regularizer pointwise_regularizer = {};
  Regularizer bias_regularizer = {};
  std::string name = "";
};

// y = activation(conv(conv(x, depthwise_kernel), pointwise_kernel) + bias)
//
// Each channel by itself, then a 1x1 convolution over all of them. Input
// [batch, height, width, channels], output [batch, height', width', filters],
// with extents as of Conv2DLayer. Weights: depthwise_kernel [kernel height,
// kernel width, channels, depth_multiplier], pointwise_kernel [1, 1, channels *
// depth_multiplier, filters], bias [filters] if `use_bias`.
//
// Source: Chollet, "Xception", 2016 (arXiv:1610.02357);
// keras.layers.SeparableConv2D.
class SeparableConv2DLayer : public Layer {
 public:
  SeparableConv2DLayer(int64_t filters, Size2D kernel_size,
                       const SeparableConv2DLayerOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t filters_;
  Size2D kernel_size_;
  SeparableConv2DLayerOptions options_;
  Weight depthwise_kernel_;
  Weight pointwise_kernel_;
  Weight bias_;
};

// Equivalent to: keras.layers.SeparableConv2D.
LayerPtr SeparableConv2D(int64_t filters, Size2D kernel_size,
                         const SeparableConv2DLayerOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_DEPTHWISE_CONVOLUTION_H_
