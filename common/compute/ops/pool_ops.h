#ifndef COMMON_COMPUTE_OPS_POOL_OPS_H_
#define COMMON_COMPUTE_OPS_POOL_OPS_H_

#include <array>
#include <cstdint>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/window_options.h"

// Pooling of images, [batch, height, width, channels], of a floating dtype.
// Pooling over whole images is Mean() or Max() over axes 1 and 2; in one
// dimension, a window and an image of height 1.
namespace muster {

struct Pool2DOptions {
  std::array<int64_t, 2> window = {2, 2};  // Height and width.
  std::array<int64_t, 2> strides = {2, 2};
  // Elements of the padding are left out. Explicit padding is narrower than
  // the window.
  Padding2D padding;
};

// NaN when any element of the window is. The gradient goes to the first of
// equal maxima, row by row.
Value MaxPool2D(Value x, const Pool2DOptions& options = {});

// The mean of those elements of the window that lie in the image.
Value AveragePool2D(Value x, const Pool2DOptions& options = {});

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_POOL_OPS_H_
