#ifndef COMMON_LEARN_NN_LAYERS_CONVOLUTION_3D_H_
#define COMMON_LEARN_NN_LAYERS_CONVOLUTION_3D_H_

#include <cstdint>
#include <string>

#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/window.h"

namespace muster {

struct Conv3DLayerOptions {
  Size3D strides = 1;
  Padding padding = Padding::kValid;
  Size3D dilation_rate = 1;
  int64_t groups = 1;  // As Conv2DLayerOptions.
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
// Input [batch, depth, height, width, channels], of known extents but for the
// batch; integers become float32. Output [batch, depth', height', width',
// filters] with the extents of Conv2DLayer for each axis.
// Weights: kernel [kernel depth, kernel height, kernel width, channels /
// groups, filters], and bias [filters] if `use_bias`.
//
// Computed as one Conv2D of images that have the slices of a window along depth
// as channels, which takes kernel depth times the memory of the input.
//
// Source: keras.layers.Conv3D.
class Conv3DLayer : public Layer {
 public:
  Conv3DLayer(int64_t filters, Size3D kernel_size,
              const Conv3DLayerOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t filters_;
  Size3D kernel_size_;
  Conv3DLayerOptions options_;
  Weight kernel_;
  Weight bias_;
};

// Equivalent to: keras.layers.Conv3D.
LayerPtr Conv3D(int64_t filters, Size3D kernel_size,
                const Conv3DLayerOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_CONVOLUTION_3D_H_
