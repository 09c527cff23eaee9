#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_UPDATE_FUNCTIONS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_UPDATE_FUNCTIONS_H_

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/update_parameters.h"
#include "common/core/device/device_language.h"

// Device code that the kernels of update rules share.
namespace muster::internal {

__device__ bool IsClosed(const DeviceGate* gate) {
  return gate != nullptr && gate->is_closed != 0;
}

// True if the update of the step must not be made.
__device__ bool IsSkipped(const UpdateCondition& condition) {
  return IsClosed(condition.gate) ||
         (condition.variant != nullptr &&
          *condition.variant != condition.wanted_variant);
}

// Returns the mean gradient: `g`, or `g` divided by the number of gradients if
// `g` is their sum.
template <typename T>
__device__ T MeanGradient(const UpdateItem& item, T g) {
  return item.gradients_in_sum == 0 ? g
                                    : g / static_cast<T>(item.gradients_in_sum);
}

template <typename T>
__device__ T GradientAt(const UpdateItem& item, int64_t at) {
  return MeanGradient(item, static_cast<const T*>(item.gradient)[at]);
}

// Limits an element of a gradient. `factor` points to the item's factor and is
// read only if a norm limits the gradient.
template <typename T>
__device__ T LimitedGradient(const UpdateItem& item, const double* factor,
                             T g) {
  if (item.clip == ClipKind::kValue) {
    const T bound = static_cast<T>(item.clip_limit);
    return g > bound ? bound : g < -bound ? -bound : g;
  }
  if (item.clip == ClipKind::kNone) return g;
  return g * static_cast<T>(*factor);
}

// Returns element `at` of a gradient after limiting.
template <typename T>
__device__ T LimitedGradientAt(const UpdateItem& item, const double* factor,
                               int64_t at) {
  return LimitedGradient(item, factor, GradientAt<T>(item, at));
}

// Adds the threads' sums in pairs. Every thread of the block calls it.
__device__ double BlockSum(double sum) {
  __shared__ double sums[SquaresParameters::kThreads];
  sums[threadIdx.x] = sum;
  for (uint32_t half = SquaresParameters::kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  const double total = sums[0];
  // All threads have read the result, so `sums` may be reused.
  __syncthreads();
  return total;
}

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_UPDATE_FUNCTIONS_H_
