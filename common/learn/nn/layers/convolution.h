#ifndef COMMON_LEARN_NN_LAYERS_CONVOLUTION_H_
#define COMMON_LEARN_NN_LAYERS_CONVOLUTION_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/window.h"

// Convolutions of images [batch, height, width, channels] and sequences [batch,
// steps, channels] with trained kernels. Integers are converted to float32.
namespace muster {

struct Conv2DLayerOptions {
  Size2D strides = 1;
  Padding padding = Padding::kValid;
  Size2D dilation_rate = 1;
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

//   y = activation(conv(x, kernel) + bias)
//
// Input [batch, height, width, channels]. Output [batch, height', width',
// filters], where for each spatial axis
//   kSame   extent' = ceil(extent / stride)
//   kValid  extent' = ceil((extent - (kernel - 1) * dilation) / stride)
// Weights: kernel [kernel height, kernel width, channels / groups, filters],
// and bias [filters] if `use_bias`.
//
// Source: keras.layers.Conv2D.
class Conv2DLayer : public Layer {
 public:
  Conv2DLayer(int64_t filters, Size2D kernel_size,
              const Conv2DLayerOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t filters_;
  Size2D kernel_size_;
  Conv2DLayerOptions options_;
  Weight kernel_;
  Weight bias_;
};

// Examples: Conv2D(32, 3), Conv2D(64, {3, 1}, {.strides = 2, .padding =
// Padding::kSame}).
//
// Equivalent to: keras.layers.Conv2D.
LayerPtr Conv2D(int64_t filters, Size2D kernel_size,
                const Conv2DLayerOptions& options = {});

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

struct Conv1DLayerOptions {
  int64_t strides = 1;
  SequencePadding padding = Padding::kValid;
  int64_t dilation_rate = 1;
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

// Conv2DLayer with one spatial axis. Input [batch, steps, channels], output
// [batch, steps', filters], where steps' of a causal padding is that of kSame.
// Weights: kernel [kernel_size, channels / groups,
// filters], and bias [filters] if `use_bias`.
//
// Source: keras.layers.Conv1D.
class Conv1DLayer : public Layer {
 public:
  Conv1DLayer(int64_t filters, int64_t kernel_size,
              const Conv1DLayerOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t filters_;
  int64_t kernel_size_;
  Conv1DLayerOptions options_;
  Weight kernel_;
  Weight bias_;
};

// Equivalent to: keras.layers.Conv1D.
LayerPtr Conv1D(int64_t filters, int64_t kernel_size,
                const Conv1DLayerOptions& options = {});

namespace internal {

// Clamps an invalid extent for the shape of a weight. Call() reports it.
inline int64_t AtLeastZero(int64_t extent) {
  return std::max<int64_t>(extent, 0);
}

// Returns false for a `divisor` below 1.
inline bool Divides(int64_t divisor, int64_t number) {
  return divisor > 0 && number % divisor == 0;
}

}  // namespace internal
}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_CONVOLUTION_H_
