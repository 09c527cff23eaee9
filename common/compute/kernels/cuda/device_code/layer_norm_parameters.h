#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_LAYER_NORM_PARAMETERS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_LAYER_NORM_PARAMETERS_H_

#include "common/compute/kernels/cuda/device_code/device_elements.h"

// The parameter of the kernels of layer_norm.cu. Addresses are the device's.
namespace muster::internal {

// Rows of features. Blocks have (lanes, rows) threads: the lanes share a row,
// of which each has vectors of `vector` neighbouring features, lanes apart.
// There are 32 lanes or fewer, a power of 2, and kThreads threads in all; or a
// multiple of 32, and one row.
//
// Block i has the part_rows rows from i * part_rows on, or fewer. Rows of
// features are whole in a block if a lane can hold its vectors in registers: 1,
// or up to kVectors. Longer rows are read several times: each by a block of
// kLongThreads; and by the kernel of gradients by tiles, of a vector for each
// lane, along blockIdx.y, after the sums of rows that it needs were written to
// `row_sums`, [rows, 2].
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
  // 4, of float64 2, or 1 if the features are no multiple of that.
  int32_t vector;
  bool is_aligned;             // x, gradient and `to`, for loads of vectors.
  DeviceElements x, gradient;  // `gradient` is dy.
  // Of features, and of rows: float64 if x is, or float32.
  DeviceElements scale, offset;
  DeviceElements mean, inverse;
  DeviceElements to;  // y or dx.
  DeviceElements scale_gradient, offset_gradient;
  DeviceElements part_values, row_sums;  // float64 if x is, or float32.
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_LAYER_NORM_PARAMETERS_H_
