// Recurrent layers over all time steps, with the loops of the host: the threads
// of a block run some rows of the batch.

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/recurrence_parameters.h"
#include "common/compute/kernels/recurrence.h"
#include "common/core/device/device_language.h"

// Calling a function costs less than inlining all activations at each place
// that uses one.
#ifdef __CUDACC__
#define MUSTER_NOT_INLINED __device__ __noinline__
#else
#define MUSTER_NOT_INLINED
#endif

namespace muster::internal {
namespace {

struct BlockLoops {
  template <typename Body, typename... Arguments>
  __device__ static void Run(int64_t count, Arguments... arguments) {
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
      Body::At(i, arguments...);
    }
    __syncthreads();
  }
};

template <typename C>
MUSTER_NOT_INLINED C ActivatedElement(functions::CellActivation kind, C x) {
  switch (kind) {
#define MUSTER_ACTIVATE(name, keras_name, function) \
  case functions::CellActivation::k##name:          \
    return functions::function()(x);
    MUSTER_CELL_ACTIVATIONS(MUSTER_ACTIVATE)
#undef MUSTER_ACTIVATE
    default:
      return x;
  }
}

template <typename C>
MUSTER_NOT_INLINED C ElementGradient(functions::CellActivation kind, C x,
                                     C dy) {
  switch (kind) {
#define MUSTER_DIFFERENTIATE(name, keras_name, function) \
  case functions::CellActivation::k##name:               \
    return functions::GradientOf<functions::function>(x, dy);
    MUSTER_CELL_ACTIVATIONS(MUSTER_DIFFERENTIATE)
#undef MUSTER_DIFFERENTIATE
    default:
      return dy;
  }
}

// As RowActivation. Functions of the whole row are computed by one thread.
template <typename C>
struct BlockActivation {
  functions::CellActivation kind;

  __device__ void forward(int64_t count, const C* x, C* y) const {
    switch (kind) {
#define MUSTER_FORWARD(name, keras_name, function)                      \
  case functions::CellActivation::k##name:                              \
    if (threadIdx.x == 0) functions::function::Forward<C>(count, x, y); \
    break;
      MUSTER_ROW_ACTIVATIONS(MUSTER_FORWARD)
#undef MUSTER_FORWARD
      default:
        for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
          y[i] = ActivatedElement(kind, x[i]);
        }
    }
    __syncthreads();
  }

  __device__ void backward(int64_t count, const C* x, const C* y, const C* dy,
                           C* dx) const {
    switch (kind) {
#define MUSTER_BACKWARD(name, keras_name, function)          \
  case functions::CellActivation::k##name:                   \
    if (threadIdx.x == 0) {                                  \
      functions::function::Backward<C>(count, x, y, dy, dx); \
    }                                                        \
    break;
      MUSTER_ROW_ACTIVATIONS(MUSTER_BACKWARD)
#undef MUSTER_BACKWARD
      default:
        for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
          dx[i] = ElementGradient(kind, x[i], dy[i]);
        }
    }
    __syncthreads();
  }
};

// Multiplies rows [rows, depth] by a matrix [depth, columns] whose rows begin
// `stride` elements apart. A thread reads each element of its columns once for
// all rows.
template <typename C>
struct BlockProduct {
  const C* matrix;
  int64_t stride, rows, depth, columns;

  __device__ void operator()(const C* x, C* y) const {
    constexpr int kRowsMax = RecurrenceParameters::kRowsMax;
    for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) {
      C sums[kRowsMax];
      MUSTER_UNROLL
      for (int r = 0; r < kRowsMax; ++r) sums[r] = C{0};
      for (int64_t k = 0; k < depth; ++k) {
        const C element = matrix[k * stride + j];
        MUSTER_UNROLL
        for (int r = 0; r < kRowsMax; ++r) {
          if (r < rows) sums[r] += x[r * depth + k] * element;
        }
      }
      MUSTER_UNROLL
      for (int r = 0; r < kRowsMax; ++r) {
        if (r < rows) y[r * columns + j] = sums[r];
      }
    }
    __syncthreads();
  }
};

__device__ recurrence::Rows RowsOfBlock(const RecurrenceParameters& p) {
  const int64_t begin = int64_t{blockIdx.x} * p.rows_per_block;
  const int64_t end = begin + p.rows_per_block;
  return {begin, end < p.extents.batch ? end : p.extents.batch};
}

template <typename C>
__device__ C* MemoryOfBlock(const RecurrenceParameters& p) {
  if (p.memory == nullptr) return static_cast<C*>(DynamicSharedMemory());
  return static_cast<C*>(p.memory) +
         blockIdx.x *
             recurrence::WorkspaceSize(p.rows_per_block, p.extents.units);
}

template <typename C>
__device__ recurrence::Activations<BlockActivation<C>> ActivationsOf(
    const RecurrenceParameters& p) {
  return {{p.activation}, {p.recurrent_activation}};
}

template <typename C>
__device__ void RunForward(const RecurrenceForwardParameters<C>& p) {
  const RecurrenceParameters& common = p.common;
  const recurrence::Rows rows = RowsOfBlock(common);
  const int64_t units = common.extents.units;
  const int64_t width = common.form.gate_count() * units;
  const int64_t first = common.form.product_gate_count() * units;
  const C* const kernel = static_cast<const C*>(common.kernel);
  recurrence::Forward<C, BlockLoops, BlockActivation<C>>(
      common.form, common.extents, ActivationsOf<C>(common), p.operands)
      .Run(rows, MemoryOfBlock<C>(common),
           BlockProduct<C>{kernel, width, rows.count(), units, first},
           BlockProduct<C>{kernel + first, width, rows.count(), units, units});
}

template <typename C>
__device__ void RunBackward(const RecurrenceBackwardParameters<C>& p) {
  const RecurrenceParameters& common = p.common;
  const recurrence::Rows rows = RowsOfBlock(common);
  const int64_t units = common.extents.units;
  const int64_t first = common.form.product_gate_count() * units;
  const C* const kernel = static_cast<const C*>(common.kernel);
  recurrence::Backward<C, BlockLoops, BlockActivation<C>>(
      common.form, common.extents, ActivationsOf<C>(common), p.operands)
      .Run(rows, MemoryOfBlock<C>(common),
           BlockProduct<C>{kernel, units, rows.count(), first, units},
           BlockProduct<C>{kernel + first * units, units, rows.count(), units,
                           units});
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void recurrence_float(
    const __grid_constant__ RecurrenceForwardParameters<float> p) {
  AwaitPrecedingKernel();
  RunForward(p);
}

extern "C" __global__ void recurrence_double(
    const __grid_constant__ RecurrenceForwardParameters<double> p) {
  AwaitPrecedingKernel();
  RunForward(p);
}

extern "C" __global__ void recurrence_gradient_float(
    const __grid_constant__ RecurrenceBackwardParameters<float> p) {
  AwaitPrecedingKernel();
  RunBackward(p);
}

extern "C" __global__ void recurrence_gradient_double(
    const __grid_constant__ RecurrenceBackwardParameters<double> p) {
  AwaitPrecedingKernel();
  RunBackward(p);
}

MUSTER_SIMULATED_KERNELS(recurrence, MUSTER_BARRIER_KERNEL(recurrence_float),
                         MUSTER_BARRIER_KERNEL(recurrence_double),
                         MUSTER_BARRIER_KERNEL(recurrence_gradient_float),
                         MUSTER_BARRIER_KERNEL(recurrence_gradient_double))
