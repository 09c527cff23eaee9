#ifndef COMMON_COMPUTE_OPS_POOL_OPS_H_
#define COMMON_COMPUTE_OPS_POOL_OPS_H_

#include <array>
#include <cstdint>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/window_options.h"

// Pooling of images [batch, height, width, channels] of a floating dtype. For
// global pooling use Mean() or Max() over axes 1 and 2. Use height 1 for one
// dimension.
namespace muster {

struct Pool2DOptions {
  std::array<int64_t, 2> window = {2, 2};  // Height and width.
  std::array<int64_t, 2> strides = {2, 2};
  // Padding does not contribute. Explicit padding must be narrower than the
  // window.
  Padding2D padding;
};

// NaN if any element of the window is NaN. The gradient goes to the first of
// equal maxima in row-major order.
Value MaxPool2D(Value x, const Pool2DOptions& options = {});

// The mean of the window's elements within the image.
Value AveragePool2D(Value x, const Pool2DOptions& options = {});

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_POOL_OPS_H_
