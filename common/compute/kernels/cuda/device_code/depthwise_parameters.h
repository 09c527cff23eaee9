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
// is the result. A thread has `vector` neighbouring channels of a strip:
// neighbouring pixels of a row.
//
// Images as results: rows are those of all images of the result. A block takes
// blockDim.x neighbouring items of each of blockDim.y rows, where an item is a
// strip of a vector; blockIdx.x counts the tiles of `tiles_per_row` and rows of
// tiles.
//
// The kernel as the result: strips are those of y. Block (i, j) takes those
// from i * part_strips on, part_strips of them or fewer, which the lanes
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

  // If windows are 3 x 3, strips cover kImagePixels of x where images are the
  // result, and kKernelPixels of y where the kernel is. Other windows have
  // strips of 1 pixel.
  static constexpr int kImagePixels = 4;
  static constexpr int kKernelPixels = 2;

  DepthwiseAxis height, width;
  int32_t channels;
  int32_t vector;   // 16 bytes of elements, or 1.
  bool is_aligned;  // x, kernel and y, for loads of vectors.
  DeviceElements x, kernel, y;
  uint32_t rows;  // Of all images: of the result, or of y.
  uint32_t strips_per_row;
  uint32_t tiles_per_row;  // Images as results.
  uint32_t strips;         // Of all rows; the kernel as the result.
  uint32_t part_strips, part_count;
  float* part_values;
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEPTHWISE_PARAMETERS_H_
