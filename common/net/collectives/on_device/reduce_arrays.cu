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

// T is how elements are stored, C how they are combined. Threads that follow
// each other have elements that do; a thread has several, so that their loads
// do not wait for each other.
template <typename T, typename C, typename Bits = C>
__device__ void ReduceElements(const ReduceArraysParameters& p) {
  constexpr int kElements = ReduceArraysParameters::kElements;
  constexpr int kThreads = ReduceArraysParameters::kThreads;
  const int64_t first =
      static_cast<int64_t>(blockIdx.x) * kThreads * kElements + threadIdx.x;
  C values[kElements] = {};
  for (int32_t k = 0; k < p.input_count; ++k) {
    const T* const input = static_cast<const T*>(p.inputs[k]);
    for (int e = 0; e < kElements; ++e) {
      const int64_t i = first + e * kThreads;
      if (i >= p.count) continue;
      const C element = static_cast<C>(input[i]);
      values[e] =
          k == 0 ? element : Combine<C, Bits>(p.reduction, values[e], element);
    }
  }
  for (int e = 0; e < kElements; ++e) {
    const int64_t i = first + e * kThreads;
    if (i >= p.count) continue;
    if (p.divisor > 1) values[e] = values[e] / static_cast<C>(p.divisor);
    for (int32_t k = 0; k < p.output_count; ++k) {
      static_cast<T*>(p.outputs[k])[i] = static_cast<T>(values[e]);
    }
  }
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void reduce_float32(
    const __grid_constant__ ReduceArraysParameters p) {
  ReduceElements<float, float>(p);
}

extern "C" __global__ void reduce_float64(
    const __grid_constant__ ReduceArraysParameters p) {
  ReduceElements<double, double>(p);
}

extern "C" __global__ void reduce_float16(
    const __grid_constant__ ReduceArraysParameters p) {
  ReduceElements<muster::float16, float>(p);
}

extern "C" __global__ void reduce_bfloat16(
    const __grid_constant__ ReduceArraysParameters p) {
  ReduceElements<muster::bfloat16, float>(p);
}

extern "C" __global__ void reduce_int32(
    const __grid_constant__ ReduceArraysParameters p) {
  ReduceElements<int32_t, int32_t, uint32_t>(p);
}

extern "C" __global__ void reduce_int64(
    const __grid_constant__ ReduceArraysParameters p) {
  ReduceElements<int64_t, int64_t, uint64_t>(p);
}

MUSTER_SIMULATED_KERNELS(reduce_arrays, MUSTER_PLAIN_KERNEL(reduce_float32),
                         MUSTER_PLAIN_KERNEL(reduce_float64),
                         MUSTER_PLAIN_KERNEL(reduce_float16),
                         MUSTER_PLAIN_KERNEL(reduce_bfloat16),
                         MUSTER_PLAIN_KERNEL(reduce_int32),
                         MUSTER_PLAIN_KERNEL(reduce_int64))
