#ifndef COMMON_LEARN_NN_CONVOLVE_3D_H_
#define COMMON_LEARN_NN_CONVOLVE_3D_H_

#include <cstdint>

#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/window.h"

namespace muster::internal {

// All of at least 1.
struct Convolve3DOptions {
  Size3D strides = 1;
  Size3D dilations = 1;
  Padding padding = Padding::kValid;
  int64_t groups = 1;
};

// The depth of the output; 0 if the kernel is deeper than the volume.
int64_t OutputDepth(int64_t depth, int64_t kernel_depth,
                    const Convolve3DOptions& options);

// Convolves volumes [batch, depth, height, width, channels] of known extents
// with a kernel [depth, height, width, channels / groups, filters], as Conv2D()
// does images: slices that one output slice depends on are channels of an
// image. OutputDepth() must be at least 1.
Value Convolve3D(Value x, Value kernel, const Convolve3DOptions& options);

}  // namespace muster::internal

#endif  // COMMON_LEARN_NN_CONVOLVE_3D_H_
