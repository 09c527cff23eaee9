#ifndef COMMON_LEARN_NN_LAYERS_CONVOLUTION_TRANSPOSE_H_
#define COMMON_LEARN_NN_LAYERS_CONVOLUTION_TRANSPOSE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/window.h"

// Transposed convolutions, which enlarge images [batch, height, width,
// channels], sequences [batch, steps, channels] and volumes [batch, depth,
// height, width, channels]. Integers are converted to float32.
namespace muster {

struct Conv2DTransposeOptions {
  Size2D strides = 1;
  Padding padding = Padding::kValid;
  // Added to the extents of the output; absent: see Conv2DTransposeLayer.
  std::optional<Size2D> output_padding = std::nullopt;
  Size2D dilation_rate = 1;
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

//   y = activation(conv_transpose(x, kernel) + bias)
//
// where conv_transpose(x, kernel) is the gradient of sum(x * conv(y, kernel))
// by y. Input [batch, height, width, channels]. Output [batch, height', width',
// filters], where for each spatial axis, with
// window = (kernel - 1) * dilation + 1,
//   kSame   extent' = extent * stride
//   kValid  extent' = (extent - 1) * stride + max(window, stride)
// and with `output_padding`
//   kSame   extent' = (extent - 1) * stride + window % 2 + output_padding
//   kValid  extent' = (extent - 1) * stride + window + output_padding
// Height and width must be known. Weights: kernel [kernel height, kernel width,
// filters, channels], and bias [filters] if `use_bias`.
//
// Source: Zeiler et al., "Deconvolutional Networks", 2010;
// keras.layers.Conv2DTranspose.
class Conv2DTransposeLayer : public Layer {
 public:
  Conv2DTransposeLayer(int64_t filters, Size2D kernel_size,
                       const Conv2DTransposeOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t filters_;
  Size2D kernel_size_;
  Conv2DTransposeOptions options_;
  Weight kernel_;
  Weight bias_;
};

// Equivalent to: keras.layers.Conv2DTranspose.
LayerPtr Conv2DTranspose(int64_t filters, Size2D kernel_size,
                         const Conv2DTransposeOptions& options = {});

struct Conv1DTransposeOptions {
  int64_t strides = 1;
  Padding padding = Padding::kValid;
  std::optional<int64_t> output_padding = std::nullopt;
  int64_t dilation_rate = 1;
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

// Conv2DTransposeLayer with one spatial axis. Input [batch, steps, channels],
// output [batch, steps', filters]. Weights: kernel [kernel_size, filters,
// channels], and bias [filters] if `use_bias`.
//
// Source: keras.layers.Conv1DTranspose.
class Conv1DTransposeLayer : public Layer {
 public:
  Conv1DTransposeLayer(int64_t filters, int64_t kernel_size,
                       const Conv1DTransposeOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t filters_;
  int64_t kernel_size_;
  Conv1DTransposeOptions options_;
  Weight kernel_;
  Weight bias_;
};

// Equivalent to: keras.layers.Conv1DTranspose.
LayerPtr Conv1DTranspose(int64_t filters, int64_t kernel_size,
                         const Conv1DTransposeOptions& options = {});

struct Conv3DTransposeOptions {
  Size3D strides = 1;
  Padding padding = Padding::kValid;
  std::optional<Size3D> output_padding = std::nullopt;
  Size3D dilation_rate = 1;
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

// Conv2DTransposeLayer with three spatial axes. Input [batch, depth, height,
// width, channels], of known extents but for the batch, output [batch, depth',
// height', width', filters]. Weights: kernel [kernel depth, kernel height,
// kernel width, filters, channels], and bias [filters] if `use_bias`.
//
// Computed as one transposed convolution of all slices, with the slices of the
// kernel as filters, whose results are added up where they overlap along depth.
// That takes kernel depth times the memory of the output.
//
// Source: keras.layers.Conv3DTranspose.
class Conv3DTransposeLayer : public Layer {
 public:
  Conv3DTransposeLayer(int64_t filters, Size3D kernel_size,
                       const Conv3DTransposeOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t filters_;
  Size3D kernel_size_;
  Conv3DTransposeOptions options_;
  Weight kernel_;
  Weight bias_;
};

// Equivalent to: keras.layers.Conv3DTranspose.
LayerPtr Conv3DTranspose(int64_t filters, Size3D kernel_size,
                         const Conv3DTransposeOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_CONVOLUTION_TRANSPOSE_H_
