// Reductions and running sums along axes.

#include "common/compute/kernels/cuda/device_functions.h"
#include "common/compute/kernels/cuda/kernel_parameters.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

template <typename C>
__device__ C Combine(ReduceKind reduction, C a, C b) {
  switch (reduction) {
    case ReduceKind::kProd:
      return WrappingMul(a, b);
    // IsNanNumber: NaN if any element is NaN.
    case ReduceKind::kMax:
      return b > a || IsNanNumber(b) ? b : a;
    case ReduceKind::kMin:
      return b < a || IsNanNumber(b) ? b : a;
    case ReduceKind::kSum:
    case ReduceKind::kMean:
      break;
  }
  return WrappingAdd(a, b);
}

template <typename C>
__device__ void Reduce(const ReduceParameters& p, C initial) {
  __shared__ C partial[ReduceParameters::kThreadsMax];
  const int64_t result =
      static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  C combined = initial;
  if (result < p.count) {
    const int64_t begin = p.kept(result);
    for (int64_t j = threadIdx.y; j < p.group_count; j += blockDim.y) {
      combined = Combine(p.reduction, combined,
                         LoadElement<C>(p.from, begin + p.reduced(j)));
    }
  }
  C* const own = partial + threadIdx.x;
  own[threadIdx.y * blockDim.x] = combined;
  for (uint32_t lanes = blockDim.y / 2; lanes > 0; lanes /= 2) {
    __syncthreads();
    if (threadIdx.y < lanes) {
      own[threadIdx.y * blockDim.x] =
          Combine(p.reduction, own[threadIdx.y * blockDim.x],
                  own[(threadIdx.y + lanes) * blockDim.x]);
    }
  }
  if (threadIdx.y != 0 || result >= p.count) return;
  combined = own[0];
  if (p.reduction == ReduceKind::kMean) {
    combined = combined / static_cast<C>(p.group_count);
  }
  StoreElement(p.to, result, combined);
}

template <typename C>
__device__ void FindExtreme(const ArgParameters& p) {
  const int64_t result = GlobalThread();
  if (result >= p.count) return;
  const int64_t begin = p.kept(result);
  int64_t chosen = 0;
  C best =
      p.group_count == 0 ? C(0) : LoadElement<C>(p.from, begin + p.reduced(0));
  for (int64_t j = 1; j < p.group_count; ++j) {
    const C x = LoadElement<C>(p.from, begin + p.reduced(j));
    if (p.is_max ? x > best : x < best) {
      best = x;
      chosen = j;
    }
  }
  p.to[result] = chosen;
}

template <typename C>
__device__ void CumulateSums(const CumSumParameters& p) {
  const int64_t group = GlobalThread();
  if (group >= p.count) return;
  const int64_t begin = p.kept(group);
  C sum = 0;
  for (int64_t j = 0; j < p.group_count; ++j) {
    const int64_t at =
        begin + p.reduced(p.is_reversed ? p.group_count - 1 - j : j);
    const C before = sum;
    sum = WrappingAdd(sum, LoadElement<C>(p.from, at));
    StoreElement(p.to, at, p.is_exclusive ? before : sum);
  }
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void reduce_float(
    const __grid_constant__ ReduceParameters p) {
  Reduce<double>(p, p.initial_float);
}

extern "C" __global__ void reduce_integer(
    const __grid_constant__ ReduceParameters p) {
  Reduce<int64_t>(p, p.initial_integer);
}

extern "C" __global__ void arg_float(const __grid_constant__ ArgParameters p) {
  FindExtreme<double>(p);
}

extern "C" __global__ void arg_integer(
    const __grid_constant__ ArgParameters p) {
  FindExtreme<int64_t>(p);
}

// Element i is the product of all other elements of its group. The output holds
// the products of the elements before it in between.
extern "C" __global__ void prod_of_others(
    const __grid_constant__ ProdOfOthersParameters p) {
  const int64_t group = GlobalThread();
  if (group >= p.count) return;
  const int64_t begin = p.kept(group);
  double before = 1;
  for (int64_t j = 0; j < p.group_count; ++j) {
    const int64_t at = begin + p.reduced(j);
    StoreElement(p.to, at, before);
    before *= LoadElement<double>(p.from, at);
  }
  double after = 1;
  for (int64_t j = p.group_count - 1; j >= 0; --j) {
    const int64_t at = begin + p.reduced(j);
    StoreElement(p.to, at, LoadElement<double>(p.to, at) * after);
    after *= LoadElement<double>(p.from, at);
  }
}

extern "C" __global__ void cum_sum_float(
    const __grid_constant__ CumSumParameters p) {
  CumulateSums<double>(p);
}

extern "C" __global__ void cum_sum_integer(
    const __grid_constant__ CumSumParameters p) {
  CumulateSums<int64_t>(p);
}

MUSTER_SIMULATED_KERNELS(reduce, MUSTER_BARRIER_KERNEL(reduce_float),
                         MUSTER_BARRIER_KERNEL(reduce_integer),
                         MUSTER_PLAIN_KERNEL(arg_float),
                         MUSTER_PLAIN_KERNEL(arg_integer),
                         MUSTER_PLAIN_KERNEL(prod_of_others),
                         MUSTER_PLAIN_KERNEL(cum_sum_float),
                         MUSTER_PLAIN_KERNEL(cum_sum_integer))
