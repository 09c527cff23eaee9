// Matrix products with any strides, for all types. Used if there is no library
// of products or it does not support the case.

#include "common/compute/functions/activation_functions.h"
#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

constexpr int kTile = MatMulParameters::kTile;
constexpr int kThreads = MatMulParameters::kThreads;
constexpr int kDepth = 16;  // Elements of the inner axis in a tile.
constexpr int kEach = 4;    // Rows and columns that a thread computes.
constexpr int kSide = kTile / kEach;

template <typename C>
__device__ C Activate(MatMulParameters::Activation activation, C x) {
  if constexpr (!kIsInteger<C>) {
    switch (activation) {
      case MatMulParameters::Activation::kNone:
        return x;
      case MatMulParameters::Activation::kRelu:
        return functions::Relu()(x);
      case MatMulParameters::Activation::kRelu6:
        return functions::Relu6()(x);
      case MatMulParameters::Activation::kTanh:
        return functions::Tanh()(x);
      case MatMulParameters::Activation::kSigmoid:
        return functions::Sigmoid()(x);
      case MatMulParameters::Activation::kGelu:
        return functions::Gelu()(x);
      case MatMulParameters::Activation::kGeluTanh:
        return functions::GeluTanh()(x);
    }
  }
  return x;
}

template <typename C>
struct Tiles {
  C a[kDepth][kTile];
  C b[kDepth][kTile];
};

// Reads the next kDepth columns of a and rows of b; zeros outside.
template <typename C>
__device__ void LoadTiles(const MatMulParameters& p, int64_t first_row,
                          int64_t first_column, int64_t first_inner,
                          int64_t a_begin, int64_t b_begin, Tiles<C>* tiles) {
  for (int i = threadIdx.x; i < kDepth * kTile; i += kThreads) {
    // Adjacent threads read adjacent memory.
    const bool a_runs_along_inner = p.a_column_stride == 1;
    const int a_inner = a_runs_along_inner ? i % kDepth : i / kTile;
    const int a_row = a_runs_along_inner ? i / kDepth : i % kTile;
    const int64_t row = first_row + a_row;
    const int64_t inner = first_inner + a_inner;
    tiles->a[a_inner][a_row] =
        row < p.rows && inner < p.inner
            ? LoadElement<C>(p.a, a_begin + row * p.a_row_stride +
                                      inner * p.a_column_stride)
            : C(0);
    const bool b_runs_along_inner = p.b_row_stride == 1;
    const int b_inner = b_runs_along_inner ? i % kDepth : i / kTile;
    const int b_column = b_runs_along_inner ? i / kDepth : i % kTile;
    const int64_t column = first_column + b_column;
    const int64_t depth = first_inner + b_inner;
    tiles->b[b_inner][b_column] =
        column < p.columns && depth < p.inner
            ? LoadElement<C>(p.b, b_begin + depth * p.b_row_stride +
                                      column * p.b_column_stride)
            : C(0);
  }
}

template <typename C>
__device__ void MultiplyTile(const MatMulParameters& p) {
  __shared__ Tiles<C> tiles;
  const int64_t matrix = blockIdx.y;
  const int64_t first_row = blockIdx.x / p.tile_columns * kTile;
  const int64_t first_column = blockIdx.x % p.tile_columns * kTile;
  const int64_t a_begin = p.a_batch(matrix) * p.rows * p.inner;
  const int64_t b_begin = p.b_batch(matrix) * p.inner * p.columns;
  const int x = threadIdx.x % kSide;
  const int y = threadIdx.x / kSide;
  C sums[kEach][kEach] = {};
  for (int64_t inner = 0; inner < p.inner; inner += kDepth) {
    LoadTiles(p, first_row, first_column, inner, a_begin, b_begin, &tiles);
    __syncthreads();
    MUSTER_UNROLL
    for (int k = 0; k < kDepth; ++k) {
      MUSTER_UNROLL
      for (int i = 0; i < kEach; ++i) {
        MUSTER_UNROLL
        for (int j = 0; j < kEach; ++j) {
          sums[i][j] =
              WrappingAdd(sums[i][j], WrappingMul(tiles.a[k][y + i * kSide],
                                                  tiles.b[k][x + j * kSide]));
        }
      }
    }
    __syncthreads();
  }
  MUSTER_UNROLL
  for (int i = 0; i < kEach; ++i) {
    MUSTER_UNROLL
    for (int j = 0; j < kEach; ++j) {
      const int64_t row = first_row + y + i * kSide;
      const int64_t column = first_column + x + j * kSide;
      if (row >= p.rows || column >= p.columns) continue;
      C value = sums[i][j];
      if (p.bias.data != nullptr) value += LoadElement<C>(p.bias, column);
      StoreElement(p.y, (matrix * p.rows + row) * p.columns + column,
                   Activate(p.activation, value));
    }
  }
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void matmul_float(
    const __grid_constant__ MatMulParameters p) {
  AwaitPrecedingKernel();
  MultiplyTile<float>(p);
}

extern "C" __global__ void matmul_double(
    const __grid_constant__ MatMulParameters p) {
  AwaitPrecedingKernel();
  MultiplyTile<double>(p);
}

extern "C" __global__ void matmul_int64(
    const __grid_constant__ MatMulParameters p) {
  AwaitPrecedingKernel();
  MultiplyTile<int64_t>(p);
}

MUSTER_SIMULATED_KERNELS(matmul, MUSTER_BARRIER_KERNEL(matmul_float),
                         MUSTER_BARRIER_KERNEL(matmul_double),
                         MUSTER_BARRIER_KERNEL(matmul_int64))
