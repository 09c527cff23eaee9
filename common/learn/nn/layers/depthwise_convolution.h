#ifndef COMMON_LEARN_NN_LAYERS_DEPTHWISE_CONVOLUTION_H_
#define COMMON_LEARN_NN_LAYERS_DEPTHWISE_CONVOLUTION_H_

#include <cstdint>
#include <string>

#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/window.h"

// Depthwise convolutions of images [batch, height, width, channels] and
// sequences [batch, steps, channels]: each channel has its own kernels.
// Integers are converted to float32.
namespace muster {

struct DepthwiseConv2DLayerOptions {
  Size2D strides = 1;
  Padding padding = Padding::kValid;
  // The number of output channels per input channel.
  int64_t depth_multiplier = 1;
  Size2D dilation_rate = 1;
  Activation activation = Activation::kLinear;
  bool use_bias = true;
  Initializer depthwise_initializer = GlorotUniform();
  Initializer bias_initializer = Zeros();
  Regularizer depthwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint depthwise_constraint = {};
  Constraint bias_constraint = {};
  std::string name = "";
};

//   y = activation(depthwise_conv(x, kernel) + bias)
//
// Input [batch, height, width, channels], output [batch, height', width',
// channels * depth_multiplier]. The spatial extents are those of Conv2DLayer.
// Weights: kernel [kernel height, kernel width, channels, depth_multiplier],
// and bias [channels * depth_multiplier] if `use_bias`.
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
  Initializer depthwise_initializer = GlorotUniform();
  Initializer pointwise_initializer = GlorotUniform();
  Initializer bias_initializer = Zeros();
  Regularizer depthwise_regularizer = {};
  Regularizer pointwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint depthwise_constraint = {};
  Constraint pointwise_constraint = {};
  Constraint bias_constraint = {};
  std::string name = "";
};

// A depthwise convolution followed by a 1x1 convolution:
//
//   y = activation(conv(depthwise_conv(x, depthwise_kernel), pointwise_kernel)
//                  + bias)
//
// Input [batch, height, width, channels], output [batch, height', width',
// filters]. The spatial extents are those of Conv2DLayer. Weights:
// depthwise_kernel [kernel height, kernel width, channels, depth_multiplier],
// pointwise_kernel [1, 1, channels * depth_multiplier, filters], and bias
// [filters] if `use_bias`.
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

struct DepthwiseConv1DLayerOptions {
  int64_t strides = 1;
  Padding padding = Padding::kValid;
  int64_t depth_multiplier = 1;
  int64_t dilation_rate = 1;
  Activation activation = Activation::kLinear;
  bool use_bias = true;
  Initializer depthwise_initializer = GlorotUniform();
  Initializer bias_initializer = Zeros();
  Regularizer depthwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint depthwise_constraint = {};
  Constraint bias_constraint = {};
  std::string name = "";
};

// DepthwiseConv2DLayer with one spatial axis. Input [batch, steps, channels],
// output [batch, steps', channels * depth_multiplier]. Weights: kernel
// [kernel_size, channels, depth_multiplier], and bias [channels *
// depth_multiplier] if `use_bias`.
//
// Source: keras.layers.DepthwiseConv1D.
class DepthwiseConv1DLayer : public Layer {
 public:
  DepthwiseConv1DLayer(int64_t kernel_size,
                       const DepthwiseConv1DLayerOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t kernel_size_;
  DepthwiseConv1DLayerOptions options_;
  Weight kernel_;
  Weight bias_;
};

// Equivalent to: keras.layers.DepthwiseConv1D.
LayerPtr DepthwiseConv1D(int64_t kernel_size,
                         const DepthwiseConv1DLayerOptions& options = {});

struct SeparableConv1DLayerOptions {
  int64_t strides = 1;
  Padding padding = Padding::kValid;
  int64_t dilation_rate = 1;
  int64_t depth_multiplier = 1;
  Activation activation = Activation::kLinear;
  bool use_bias = true;
  Initializer depthwise_initializer = GlorotUniform();
  Initializer pointwise_initializer = GlorotUniform();
  Initializer bias_initializer = Zeros();
  Regularizer depthwise_regularizer = {};
  Regularizer pointwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint depthwise_constraint = {};
  Constraint pointwise_constraint = {};
  Constraint bias_constraint = {};
  std::string name = "";
};

// SeparableConv2DLayer with one spatial axis. Input [batch, steps, channels],
// output [batch, steps', filters]. Weights: depthwise_kernel [kernel_size,
// channels, depth_multiplier], pointwise_kernel [1, channels *
// depth_multiplier, filters], and bias [filters] if `use_bias`.
//
// Source: keras.layers.SeparableConv1D.
class SeparableConv1DLayer : public Layer {
 public:
  SeparableConv1DLayer(int64_t filters, int64_t kernel_size,
                       const SeparableConv1DLayerOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t filters_;
  int64_t kernel_size_;
  SeparableConv1DLayerOptions options_;
  Weight depthwise_kernel_;
  Weight pointwise_kernel_;
  Weight bias_;
};

// Equivalent to: keras.layers.SeparableConv1D.
LayerPtr SeparableConv1D(int64_t filters, int64_t kernel_size,
                         const SeparableConv1DLayerOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_DEPTHWISE_CONVOLUTION_H_
