#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEPTHWISE_PARAMETERS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEPTHWISE_PARAMETERS_H_

#include "common/compute/kernels/cuda/device_code/device_elements.h"
#include "common/core/base/host_device.h"

namespace muster::internal {

struct DepthwiseAxis {
  int32_t input_extent, output_extent, window_extent, stride, padding_before;
};

// The parameter of the kernels in depthwise.cu. x * kernel = y, with a window
// of `kernel`, [height, width, channels, 1], for each channel; one of the three
// is the result. A thread computes `vector` adjacent channels of a strip, which
// is a run of adjacent pixels of a row.
//
// If the result is an image: the rows are those of all result images. A block
// processes blockDim.x adjacent items in each of blockDim.y rows, where an item
// is a strip of a vector; blockIdx.x counts the tiles of `tiles_per_row` and
// rows of tiles.
//
// If the result is the kernel: the strips are those of y. Block (i, j)
// processes up to part_strips strips from i * part_strips on, which its lanes
// (threadIdx.y) share, and the vectors from j * blockDim.x on. It writes a sum
// for each tap and channel to `part_values`, [part_count, taps, channels];
// depthwise_combine, with blocks of (kCombineColumns, kCombineLanes), adds up
// the parts. In depthwise_kernel, blockIdx.z counts runs of kRunTaps taps of
// each row of the window.
struct DepthwiseParameters {
  static constexpr int kThreads = 256;
  static constexpr int kRunTaps = 4;
  static constexpr int kCombineColumns = 32;
  static constexpr int kCombineLanes = 16;
  static constexpr int kCombineThreads = kCombineColumns * kCombineLanes;

  // If windows are 3 x 3, strips cover kImagePixels pixels of x if the result
  // is an image, and kKernelPixels pixels of y if it is the kernel. Other
  // windows have strips of 1 pixel.
  static constexpr int kImagePixels = 4;
  static constexpr int kKernelPixels = 2;

  DepthwiseAxis height, width;
  int32_t channels;
  int32_t vector;   // 16 bytes of elements, or 1.
  bool is_aligned;  // True if x, kernel and y are aligned for loads of vectors.
  DeviceElements x, kernel, y;
  uint32_t rows;  // Rows of all images of the result, or of y.
  uint32_t strips_per_row;
  uint32_t tiles_per_row;  // If the result is an image.
  uint32_t strips;         // Of all rows, if the result is the kernel.
  uint32_t part_strips, part_count;
  float* part_values;
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEPTHWISE_PARAMETERS_H_
