#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_LAYER_NORM_PARAMETERS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_LAYER_NORM_PARAMETERS_H_

#include "common/compute/kernels/cuda/device_code/device_elements.h"

// The parameter of the kernels of layer_norm.cu. Addresses are those of the
// device.
namespace muster::internal {

// Rows of features. Blocks have (lanes, rows) threads. The lanes share a row:
// each has vectors of `vector` adjacent features, one in every `lanes` vectors.
// Either the number of lanes is a power of 2 up to 32 and there are kThreads
// threads in total, or it is a multiple of 32 and there is one row.
//
// Block i processes up to part_rows rows from i * part_rows on. A block
// processes whole rows if a lane can hold its vectors in registers: 1, or up to
// kVectors. Longer rows are read several times, each row by a block of
// kLongThreads. The kernel of gradients processes them in tiles along
// blockIdx.y, with a vector for each lane, after another kernel has written the
// sums of rows to `row_sums`, [rows, 2].
//
// The kernels of gradients write the sums over the rows of each part to
// `part_values`, [2, part_count, features], for the kernel that combines them,
// which has blocks of (kCombineFeatures, kCombineLanes).
struct LayerNormParameters {
  static constexpr int kThreads = 256;
  static constexpr int kVectors = 4;
  static constexpr int kLongThreads = 1024;
  static constexpr int kCombineFeatures = 32;
  static constexpr int kCombineLanes = 32;
  static constexpr int kCombineThreads = kCombineFeatures * kCombineLanes;

  int64_t rows, features;
  double epsilon;
  int64_t part_rows, part_count;
  // 4, or 2 for float64; 1 if the features are not a multiple of that.
  int32_t vector;
  // True if x, gradient and `to` are aligned for loads of vectors.
  bool is_aligned;
  DeviceElements x, gradient;  // `gradient` is dy.
  // Scale and offset have one number for each feature, mean and inverse one for
  // each row: float64 if x is float64, otherwise float32.
  DeviceElements scale, offset;
  DeviceElements mean, inverse;
  DeviceElements to;  // y or dx.
  DeviceElements scale_gradient, offset_gradient;
  DeviceElements part_values, row_sums;  // float64 if x is, otherwise float32.
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_LAYER_NORM_PARAMETERS_H_
