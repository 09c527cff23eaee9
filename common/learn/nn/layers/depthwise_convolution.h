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

// Depthwise convolutions of sequences [batch, steps, channels] and images
// [batch, height, width, channels]: each channel has its own kernels. Integers
// are converted to float32. The spatial extents of outputs are those of
// convolution.h.
namespace muster {

// `Size` is int64_t or Size2D.
template <typename Size>
struct DepthwiseConvLayerOptions {
  Size strides = 1;
  Padding padding = Padding::kValid;
  // The number of output channels per input channel.
  int64_t depth_multiplier = 1;
  Size dilation_rate = 1;
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
using DepthwiseConv1DLayerOptions = DepthwiseConvLayerOptions<int64_t>;
using DepthwiseConv2DLayerOptions = DepthwiseConvLayerOptions<Size2D>;

// Return layers that compute
//
//   y = activation(depthwise_conv(x, kernel) + bias)
//
// The output has the rank of the input and channels * depth_multiplier
// channels. Weights: kernel [kernel_size..., channels, depth_multiplier], and
// bias [channels * depth_multiplier] if `use_bias`.
//
// Source: keras.layers.DepthwiseConv1D and keras.layers.DepthwiseConv2D.
LayerPtr DepthwiseConv1D(int64_t kernel_size,
                         const DepthwiseConv1DLayerOptions& options = {});
LayerPtr DepthwiseConv2D(Size2D kernel_size,
                         const DepthwiseConv2DLayerOptions& options = {});

// `Size` is int64_t or Size2D.
template <typename Size>
struct SeparableConvLayerOptions {
  Size strides = 1;
  Padding padding = Padding::kValid;
  Size dilation_rate = 1;
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
using SeparableConv1DLayerOptions = SeparableConvLayerOptions<int64_t>;
using SeparableConv2DLayerOptions = SeparableConvLayerOptions<Size2D>;

// Return layers that compute a depthwise convolution followed by a convolution
// with a kernel of one element along each spatial axis:
//
//   y = activation(conv(depthwise_conv(x, depthwise_kernel), pointwise_kernel)
//                  + bias)
//
// The output has the rank of the input and `filters` channels. Weights:
// depthwise_kernel [kernel_size..., channels, depth_multiplier],
// pointwise_kernel [1..., channels * depth_multiplier, filters], and bias
// [filters] if `use_bias`.
//
// Source: Chollet, "Xception", 2016 (arXiv:1610.02357);
// keras.layers.SeparableConv1D and keras.layers.SeparableConv2D.
LayerPtr SeparableConv1D(int64_t filters, int64_t kernel_size,
                         const SeparableConv1DLayerOptions& options = {});
LayerPtr SeparableConv2D(int64_t filters, Size2D kernel_size,
                         const SeparableConv2DLayerOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_DEPTHWISE_CONVOLUTION_H_
