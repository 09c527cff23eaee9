#include "common/learn/nn/convolve_3d.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/window.h"

namespace muster::internal {
namespace {

// The slices of x that each slice of the output depends on, as channels of an
// image: [batch * output depth, height, width, kernel depth * channels].
Value SlicesAsChannels(Value x, int64_t kernel_depth, int64_t output_depth,
                       const Convolve3DOptions& options) {
  const Shape input = x.shape();
  const int64_t depth = input.dim(1);
  const int64_t channels = input.dim(4);
  const int64_t stride = options.strides.depth;
  const int64_t dilation = options.dilations.depth;
  // Of all slices, each with `stride` positions for each of the output.
  const int64_t extent = (kernel_depth - 1) * dilation + output_depth * stride;
  const int64_t padding =
      std::max<int64_t>(0, (output_depth - 1) * stride +
                               (kernel_depth - 1) * dilation + 1 - depth);
  const int64_t before = padding / 2;
  const int64_t after = std::max<int64_t>(0, extent - depth - before);
  x = Pad(x, {0, 0, before, after, 0, 0, 0, 0, 0, 0});
  std::vector<Value> slices;
  for (int64_t i = 0; i < kernel_depth; ++i) {
    Value slice = Slice(x, {0, i * dilation, 0, 0, 0},
                        {-1, output_depth * stride, -1, -1, -1});
    if (stride > 1) {
      slice = Reshape(slice, {-1, output_depth, stride, input.dim(2),
                              input.dim(3), channels});
      slice = Slice(slice, {0, 0, 0, 0, 0, 0}, {-1, -1, 1, -1, -1, -1});
    }
    slices.push_back(
        Reshape(slice, {-1, input.dim(2), input.dim(3), options.groups,
                        channels / options.groups}));
  }
  // Side by side within each group.
  return Reshape(Concat(slices, 4),
                 {-1, input.dim(2), input.dim(3), kernel_depth * channels});
}

// The kernel of such images.
Value KernelOfSlices(Value kernel) {
  const Shape shape = kernel.shape();
  return Reshape(
      Transpose(kernel, {1, 2, 0, 3, 4}),
      {shape.dim(1), shape.dim(2), shape.dim(0) * shape.dim(3), shape.dim(4)});
}

}  // namespace

int64_t OutputDepth(int64_t depth, int64_t kernel_depth,
                    const Convolve3DOptions& options) {
  const int64_t stride = options.strides.depth;
  if (options.padding == Padding::kSame) return (depth + stride - 1) / stride;
  const int64_t reach = (kernel_depth - 1) * options.dilations.depth + 1;
  return depth < reach ? 0 : (depth - reach) / stride + 1;
}

Value Convolve3D(Value x, Value kernel, const Convolve3DOptions& options) {
  if (!kernel.ok()) return kernel;
  const int64_t kernel_depth = kernel.shape().dim(0);
  const int64_t output_depth =
      OutputDepth(x.shape().dim(1), kernel_depth, options);
  const Value images =
      Conv2D(SlicesAsChannels(x, kernel_depth, output_depth, options),
             KernelOfSlices(kernel),
             {.strides = {options.strides.height, options.strides.width},
              .dilations = {options.dilations.height, options.dilations.width},
              .padding = ToPadding2D(options.padding),
              .groups = options.groups});
  if (!images.ok()) return images;
  return Reshape(images, {-1, output_depth, images.shape().dim(1),
                          images.shape().dim(2), kernel.shape().dim(4)});
}

}  // namespace muster::internal
