// Reductions and running sums along axes.

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

template <typename C>
__device__ C Combine(ReduceKind reduction, C a, C b) {
  switch (reduction) {
    case ReduceKind::kProd:
      return WrappingMul(a, b);
    // IsNanNumber() makes the result NaN if any element is NaN.
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

// The elements of a lane: elements begin, begin + stride, ... of `from`.
struct LaneElements {
  int64_t begin, stride, count;
};

// The loads of a run are in flight at the same time.
template <typename T>
__device__ double SumOf(const DeviceElements& from, const LaneElements& lane) {
  constexpr int kRun = 8;
  const T* elements = static_cast<const T*>(from.data) + lane.begin;
  double sum = 0;
  for (int64_t rest = lane.count; rest > 0; rest -= kRun) {
    const int count = rest < kRun ? static_cast<int>(rest) : kRun;
    T run[kRun];
    MUSTER_UNROLL
    for (int i = 0; i < kRun; ++i) {
      if (i < count) run[i] = elements[i * lane.stride];
    }
    MUSTER_UNROLL
    for (int i = 0; i < kRun; ++i) {
      if (i >= count) continue;
      if constexpr (kIsSame<T, double>) {
        sum += run[i];
      } else {
        sum += static_cast<float>(run[i]);
      }
    }
    elements += kRun * lane.stride;
  }
  return sum;
}

__device__ double SumOfFloats(const DeviceElements& from,
                              const LaneElements& lane) {
  switch (from.type) {
    case ElementType::kFloat64:
      return SumOf<double>(from, lane);
    case ElementType::kBfloat16:
      return SumOf<bfloat16>(from, lane);
    case ElementType::kFloat16:
      return SumOf<float16>(from, lane);
    default:
      return SumOf<float>(from, lane);
  }
}

// Combines elements first, first + lanes, ... of the group that begins at
// `begin`.
template <typename C>
__device__ C CombineLane(const ReduceParameters& p, int64_t begin,
                         int64_t first, int64_t lanes, int64_t end, C initial) {
  if (first >= end) return initial;
  const bool is_sum =
      p.reduction == ReduceKind::kSum || p.reduction == ReduceKind::kMean;
  if constexpr (!kIsInteger<C>) {
    if (is_sum && p.reduced.rank == 1) {
      const int64_t stride = p.reduced.strides[0];
      return SumOfFloats(
          p.from, {begin + p.reduced.offset + first * stride, lanes * stride,
                   (end - first + lanes - 1) / lanes});
    }
  }
  constexpr int kRun = 4;
  C combined = initial;
  for (int64_t j = first; j < end; j += kRun * lanes) {
    C run[kRun];
    MUSTER_UNROLL
    for (int i = 0; i < kRun; ++i) {
      if (j + i * lanes < end) {
        run[i] = LoadElement<C>(p.from, begin + p.reduced(j + i * lanes));
      }
    }
    MUSTER_UNROLL
    for (int i = 0; i < kRun; ++i) {
      if (j + i * lanes < end) {
        combined = Combine(p.reduction, combined, run[i]);
      }
    }
  }
  return combined;
}

template <typename C>
__device__ void Reduce(const ReduceParameters& p, C initial) {
  __shared__ C partial[ReduceParameters::kThreadsMax];
  const uint32_t lane = p.is_row ? threadIdx.x : threadIdx.y;
  const uint32_t lanes = p.is_row ? blockDim.x : blockDim.y;
  const int64_t result =
      p.is_row ? static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y
               : GlobalThread();
  const int64_t first = blockIdx.y * p.part_count;
  const int64_t end = p.group_count - first < p.part_count
                          ? p.group_count
                          : first + p.part_count;
  C combined = initial;
  if (result < p.count) {
    combined =
        CombineLane(p, p.kept(result), first + lane, lanes, end, initial);
  }
  C* const own = partial + threadIdx.y * blockDim.x + threadIdx.x;
  const uint32_t step = p.is_row ? 1 : blockDim.x;
  *own = combined;
  for (uint32_t half = lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) *own = Combine(p.reduction, *own, own[half * step]);
  }
  if (lane != 0 || result >= p.count) return;
  combined = *own;
  if (p.reduction == ReduceKind::kMean) {
    combined = combined / static_cast<C>(p.divisor);
  }
  StoreElement(p.to, blockIdx.y * p.count + result, combined);
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

extern "C" __global__ void __launch_bounds__(ReduceParameters::kThreadsMax)
    reduce_float(const __grid_constant__ ReduceParameters p) {
  AwaitPrecedingKernel();
  Reduce<double>(p, p.initial_float);
}

extern "C" __global__ void __launch_bounds__(ReduceParameters::kThreadsMax)
    reduce_integer(const __grid_constant__ ReduceParameters p) {
  AwaitPrecedingKernel();
  Reduce<int64_t>(p, p.initial_integer);
}

extern "C" __global__ void arg_float(const __grid_constant__ ArgParameters p) {
  AwaitPrecedingKernel();
  FindExtreme<double>(p);
}

extern "C" __global__ void arg_integer(
    const __grid_constant__ ArgParameters p) {
  AwaitPrecedingKernel();
  FindExtreme<int64_t>(p);
}

// Element i is the product of all other elements of its group. In between, the
// output holds the products of the preceding elements.
extern "C" __global__ void prod_of_others(
    const __grid_constant__ ProdOfOthersParameters p) {
  AwaitPrecedingKernel();
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
  AwaitPrecedingKernel();
  CumulateSums<double>(p);
}

extern "C" __global__ void cum_sum_integer(
    const __grid_constant__ CumSumParameters p) {
  AwaitPrecedingKernel();
  CumulateSums<int64_t>(p);
}

MUSTER_SIMULATED_KERNELS(reduce, MUSTER_BARRIER_KERNEL(reduce_float),
                         MUSTER_BARRIER_KERNEL(reduce_integer),
                         MUSTER_PLAIN_KERNEL(arg_float),
                         MUSTER_PLAIN_KERNEL(arg_integer),
                         MUSTER_PLAIN_KERNEL(prod_of_others),
                         MUSTER_PLAIN_KERNEL(cum_sum_float),
                         MUSTER_PLAIN_KERNEL(cum_sum_integer))
