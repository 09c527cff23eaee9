// Reduces arrays of several replicas, with the bits of the host's Reduce().

#include "common/core/device/device_language.h"
#include "common/core/tensor/float16.h"
#include "common/net/collectives/on_device/reduce_arrays_parameters.h"

namespace muster::internal {
namespace {

// Integers wrap around, which is defined for unsigned ones: `Bits`.
template <typename C, typename Bits>
__device__ C Combine(ArrayReduction reduction, C a, C b) {
  switch (reduction) {
    case ArrayReduction::kSum:
      return static_cast<C>(static_cast<Bits>(a) + static_cast<Bits>(b));
    case ArrayReduction::kProd:
      return static_cast<C>(static_cast<Bits>(a) * static_cast<Bits>(b));
    // a != a holds for NaNs.
    case ArrayReduction::kMin:
      return a < b || a != a ? a : b;
    case ArrayReduction::kMax:
      return a > b || a != a ? a : b;
  }
  return a;
}

// T is how elements are stored, C how they are combined.
template <typename T, typename C, typename Bits = C>
__device__ void ReduceElement(const ReduceArraysParameters& p) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= p.count) return;
  C value = static_cast<C>(static_cast<const T*>(p.inputs[0])[i]);
  for (int32_t k = 1; k < p.input_count; ++k) {
    value =
        Combine<C, Bits>(p.reduction, value,
                         static_cast<C>(static_cast<const T*>(p.inputs[k])[i]));
  }
  if (p.divisor > 1) value = value / static_cast<C>(p.divisor);
  static_cast<T*>(p.output)[i] = static_cast<T>(value);
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void reduce_float32(
    const __grid_constant__ ReduceArraysParameters p) {
  ReduceElement<float, float>(p);
}

extern "C" __global__ void reduce_float64(
    const __grid_constant__ ReduceArraysParameters p) {
  ReduceElement<double, double>(p);
}

extern "C" __global__ void reduce_float16(
    const __grid_constant__ ReduceArraysParameters p) {
  ReduceElement<muster::float16, float>(p);
}

extern "C" __global__ void reduce_bfloat16(
    const __grid_constant__ ReduceArraysParameters p) {
  ReduceElement<muster::bfloat16, float>(p);
}

extern "C" __global__ void reduce_int32(
    const __grid_constant__ ReduceArraysParameters p) {
  ReduceElement<int32_t, int32_t, uint32_t>(p);
}

extern "C" __global__ void reduce_int64(
    const __grid_constant__ ReduceArraysParameters p) {
  ReduceElement<int64_t, int64_t, uint64_t>(p);
}

MUSTER_SIMULATED_KERNELS(reduce_arrays, MUSTER_PLAIN_KERNEL(reduce_float32),
                         MUSTER_PLAIN_KERNEL(reduce_float64),
                         MUSTER_PLAIN_KERNEL(reduce_float16),
                         MUSTER_PLAIN_KERNEL(reduce_bfloat16),
                         MUSTER_PLAIN_KERNEL(reduce_int32),
                         MUSTER_PLAIN_KERNEL(reduce_int64))
