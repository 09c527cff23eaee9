#ifndef COMMON_LEARN_NN_LAYERS_CONVOLUTION_H_
#define COMMON_LEARN_NN_LAYERS_CONVOLUTION_H_

#include <cstdint>
#include <string>

#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/window.h"

// Convolutions of sequences [batch, steps, channels], images [batch, height,
// width, channels] and volumes [batch, depth, height, width, channels] with
// trained kernels. Integers are converted to float32.
namespace muster {

// The padding of a sequence: one of Padding, or Causal(), which puts zeros
// before the sequence only, so that no step reads later ones.
class SequencePadding {
 public:
  SequencePadding(Padding padding) : padding_(padding) {}  // NOLINT
  static SequencePadding Causal() {
    SequencePadding padding(Padding::kValid);
    padding.is_causal_ = true;
    return padding;
  }

  bool is_causal() const { return is_causal_; }
  // kValid if it is causal.
  Padding padding() const { return padding_; }

 private:
  Padding padding_;
  bool is_causal_ = false;
};

// `Size` is int64_t, Size2D or Size3D.
template <typename Size, typename AnyPadding = Padding>
struct ConvLayerOptions {
  Size strides = 1;
  AnyPadding padding = Padding::kValid;
  Size dilation_rate = 1;
  // The number of groups into which channels and filters are split. Each group
  // of filters reads only its group of channels.
  int64_t groups = 1;
  Activation activation = Activation::kLinear;
  bool use_bias = true;
  Initializer kernel_initializer = GlorotUniform();
  Initializer bias_initializer = Zeros();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = "";
};
using Conv1DLayerOptions = ConvLayerOptions<int64_t, SequencePadding>;
using Conv2DLayerOptions = ConvLayerOptions<Size2D>;
using Conv3DLayerOptions = ConvLayerOptions<Size3D>;

// Return layers that compute
//
//   y = activation(conv(x, kernel) + bias)
//
// The output has the rank of the input, `filters` channels, and for each
// spatial axis
//   kSame, Causal()  extent' = ceil(extent / stride)
//   kValid           extent' = ceil((extent - (kernel - 1) * dilation) /
//   stride)
// Weights: kernel [kernel_size..., channels / groups, filters], and bias
// [filters] if `use_bias`.
//
// All extents of volumes but the batch must be known. Volumes are convolved as
// images that have the slices of a window along depth as channels, which takes
// kernel depth times the memory of the input.
//
// Examples: Conv2D(32, 3), Conv2D(64, {3, 1}, {.strides = 2, .padding =
// Padding::kSame}).
//
// Source: keras.layers.Conv1D, keras.layers.Conv2D and keras.layers.Conv3D.
LayerPtr Conv1D(int64_t filters, int64_t kernel_size,
                const Conv1DLayerOptions& options = {});
LayerPtr Conv2D(int64_t filters, Size2D kernel_size,
                const Conv2DLayerOptions& options = {});
LayerPtr Conv3D(int64_t filters, Size3D kernel_size,
                const Conv3DLayerOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_CONVOLUTION_H_
