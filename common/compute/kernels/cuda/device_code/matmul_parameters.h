#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_MATMUL_PARAMETERS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_MATMUL_PARAMETERS_H_

#include <cstdint>

#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/core/device/driver/launch_shape.h"

namespace muster::internal {

// Returns the parameters of y = a b without operands: a is [rows, inner], b is
// [inner, columns] and y [rows, columns], one matrix each. A transposed operand
// is stored as its transpose.
inline MatMulParameters MatMulOf(int64_t rows, int64_t inner, int64_t columns,
                                 bool transpose_a, bool transpose_b) {
  constexpr int64_t kTile = MatMulParameters::kTile;
  MatMulParameters parameters = {};
  parameters.rows = rows;
  parameters.columns = columns;
  parameters.inner = inner;
  parameters.tile_columns = (columns + kTile - 1) / kTile;
  parameters.a_row_stride = transpose_a ? 1 : inner;
  parameters.a_column_stride = transpose_a ? rows : 1;
  parameters.b_row_stride = transpose_b ? 1 : columns;
  parameters.b_column_stride = transpose_b ? inner : 1;
  return parameters;
}

// Returns the shape of a launch for `matrix_count` matrices.
inline LaunchShape ShapeOf(const MatMulParameters& parameters,
                           int64_t matrix_count = 1) {
  constexpr int64_t kTile = MatMulParameters::kTile;
  LaunchShape shape;
  shape.grid[0] = static_cast<uint32_t>((parameters.rows + kTile - 1) / kTile *
                                        parameters.tile_columns);
  shape.grid[1] = static_cast<uint32_t>(matrix_count);
  shape.block[0] = MatMulParameters::kThreads;
  return shape;
}

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_MATMUL_PARAMETERS_H_
