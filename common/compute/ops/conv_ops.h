#ifndef COMMON_COMPUTE_OPS_CONV_OPS_H_
#define COMMON_COMPUTE_OPS_CONV_OPS_H_

#include <array>
#include <cstdint>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/window_options.h"

// Convolutions of images [batch, height, width, channels] as in TensorFlow:
// cross-correlations, whose kernel is not flipped. Use height 1 for one
// dimension. All operands have the same floating dtype.
namespace muster {

struct Conv2DOptions {
  std::array<int64_t, 2> strides = {1, 1};    // Along height and width.
  std::array<int64_t, 2> dilations = {1, 1};  // Along height and width.
  Padding2D padding;                          // With zeros.
  // Input and output channels are split into this many groups, and each group
  // of outputs depends on one group of inputs.
  int64_t groups = 1;
};

// `kernel` is [height, width, channels / groups, output channels].
Value Conv2D(Value x, Value kernel, const Conv2DOptions& options = {});

struct DepthwiseConv2DOptions {
  std::array<int64_t, 2> strides = {1, 1};
  std::array<int64_t, 2> dilations = {1, 1};
  Padding2D padding;
};

// Convolves each channel separately. `kernel` is [height, width, channels,
// multiplier]; output channel c * multiplier + m depends on channel c.
Value DepthwiseConv2D(Value x, Value kernel,
                      const DepthwiseConv2DOptions& options = {});

// The gradients of both: of the sum of `gradient` * Conv2D(x, kernel) with
// respect to x, and to the kernel. `like` has the type of the result; its
// elements do not matter.
Value Conv2DBackpropInput(Value gradient, Value kernel, Value like,
                          const Conv2DOptions& options = {});
Value Conv2DBackpropKernel(Value x, Value gradient, Value like,
                           const Conv2DOptions& options = {});
Value DepthwiseConv2DBackpropInput(Value gradient, Value kernel, Value like,
                                   const DepthwiseConv2DOptions& options = {});
Value DepthwiseConv2DBackpropKernel(Value x, Value gradient, Value like,
                                    const DepthwiseConv2DOptions& options = {});

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_CONV_OPS_H_
