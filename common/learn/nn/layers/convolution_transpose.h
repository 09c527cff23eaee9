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

// Transposed convolutions, which enlarge sequences [batch, steps, channels],
// images [batch, height, width, channels] and volumes [batch, depth, height,
// width, channels]. Integers are converted to float32.
namespace muster {

// `Size` is int64_t, Size2D or Size3D.
template <typename Size>
struct ConvTransposeOptions {
  Size strides = 1;
  Padding padding = Padding::kValid;
  // Added to the extents of the output; absent: see Conv2DTranspose().
  std::optional<Size> output_padding = std::nullopt;
  Size dilation_rate = 1;
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
using Conv1DTransposeOptions = ConvTransposeOptions<int64_t>;
using Conv2DTransposeOptions = ConvTransposeOptions<Size2D>;
using Conv3DTransposeOptions = ConvTransposeOptions<Size3D>;

// Return layers that compute
//
//   y = activation(conv_transpose(x, kernel) + bias)
//
// where conv_transpose(x, kernel) is the gradient of sum(x * conv(y, kernel))
// by y. The output has the rank of the input, `filters` channels, and for each
// spatial axis, with window = (kernel - 1) * dilation + 1,
//   kSame   extent' = extent * stride
//   kValid  extent' = (extent - 1) * stride + max(window, stride)
// and with `output_padding`
//   kSame   extent' = (extent - 1) * stride + window % 2 + output_padding
//   kValid  extent' = (extent - 1) * stride + window + output_padding
// All extents but the batch must be known. Weights: kernel [kernel_size...,
// filters, channels], and bias [filters] if `use_bias`.
//
// Conv3DTranspose() is computed as one transposed convolution of all slices,
// with the slices of the kernel as filters, whose results are added up where
// they overlap along depth. That takes kernel depth times the memory of the
// output.
//
// Source: Zeiler et al., "Deconvolutional Networks", 2010;
// keras.layers.Conv1DTranspose, keras.layers.Conv2DTranspose and
// keras.layers.Conv3DTranspose.
LayerPtr Conv1DTranspose(int64_t filters, int64_t kernel_size,
                         const Conv1DTransposeOptions& options = {});
LayerPtr Conv2DTranspose(int64_t filters, Size2D kernel_size,
                         const Conv2DTransposeOptions& options = {});
LayerPtr Conv3DTranspose(int64_t filters, Size3D kernel_size,
                         const Conv3DTransposeOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_CONVOLUTION_TRANSPOSE_H_
