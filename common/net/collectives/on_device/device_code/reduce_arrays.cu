// Reduces arrays of several replicas. Results have the same bits as those of
// the host's Reduce().

#include "common/core/device/device_language.h"
#include "common/core/tensor/float16.h"
#include "common/net/collectives/on_device/device_code/reduce_arrays_parameters.h"

namespace muster::internal {
namespace {

// Adjacent elements that one instruction loads or stores.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Group {
  T at[kCount];
};

// Integers are added and multiplied as the unsigned type `Bits`, for which
// overflow is defined.
template <ArrayReduction kReduction, typename Bits, typename C>
__device__ C Combine(C a, C b) {
  // a != a holds for NaNs.
  if constexpr (kReduction == ArrayReduction::kMin) {
    return a < b || a != a ? a : b;
  } else if constexpr (kReduction == ArrayReduction::kMax) {
    return a > b || a != a ? a : b;
  } else if constexpr (kReduction == ArrayReduction::kProd) {
    return static_cast<C>(static_cast<Bits>(a) * static_cast<Bits>(b));
  } else {
    return static_cast<C>(static_cast<Bits>(a) + static_cast<Bits>(b));
  }
}

template <ArrayReduction kReduction, typename Bits, typename C, typename T,
          int kGroups, int kVector>
__device__ void CombineGroups(const Group<T, kVector> (&next)[kGroups],
                              C (&values)[kGroups][kVector]) {
  for (int g = 0; g < kGroups; ++g) {
    for (int v = 0; v < kVector; ++v) {
      values[g][v] = Combine<kReduction, Bits>(values[g][v],
                                               static_cast<C>(next[g].at[v]));
    }
  }
}

// Reduces the elements of a block, starting at `begin`. Consecutive threads
// process consecutive groups of kVector elements. With kVector 1, groups may be
// beyond the end of the arrays and are skipped.
template <typename T, typename C, typename Bits, int kVector>
__device__ void ReduceBlock(const ReduceArraysParameters& p, int64_t begin) {
  constexpr int kGroups =
      ReduceArraysParameters::kThreadBytes / sizeof(T) / kVector;
  using Elements = Group<T, kVector>;
  const auto place = [begin](int g) {
    return begin + (int64_t{g} * ReduceArraysParameters::kThreads +
                    static_cast<int64_t>(threadIdx.x)) *
                       kVector;
  };
  const auto is_inside = [&](int g) {
    return kVector > 1 || place(g) < p.count;
  };
  const auto load = [&](int32_t k, Elements(&to)[kGroups]) {
    const T* const input = static_cast<const T*>(p.inputs[k]);
    for (int g = 0; g < kGroups; ++g) {
      if (!is_inside(g)) continue;
      to[g] = *reinterpret_cast<const Elements*>(input + place(g));
    }
  };
  Elements first[kGroups] = {};
  Elements next[kGroups] = {};
  load(0, first);
  // Loads the second array before using the first, so that a thread waits for
  // both together.
  if (p.input_count > 1) load(1, next);
  C values[kGroups][kVector];
  for (int g = 0; g < kGroups; ++g) {
    for (int v = 0; v < kVector; ++v) {
      values[g][v] = static_cast<C>(first[g].at[v]);
    }
  }
  for (int32_t k = 1; k < p.input_count; ++k) {
    switch (p.reduction) {
      case ArrayReduction::kSum:
        CombineGroups<ArrayReduction::kSum, Bits>(next, values);
        break;
      case ArrayReduction::kMin:
        CombineGroups<ArrayReduction::kMin, Bits>(next, values);
        break;
      case ArrayReduction::kMax:
        CombineGroups<ArrayReduction::kMax, Bits>(next, values);
        break;
      case ArrayReduction::kProd:
        CombineGroups<ArrayReduction::kProd, Bits>(next, values);
        break;
    }
    if (k + 1 < p.input_count) load(k + 1, next);
  }
  Elements results[kGroups];
  for (int g = 0; g < kGroups; ++g) {
    for (int v = 0; v < kVector; ++v) {
      if (p.divisor > 1) {
        values[g][v] = values[g][v] / static_cast<C>(p.divisor);
      }
      results[g].at[v] = static_cast<T>(values[g][v]);
    }
  }
  for (int32_t k = 0; k < p.output_count; ++k) {
    T* const output = static_cast<T*>(p.outputs[k]);
    for (int g = 0; g < kGroups; ++g) {
      if (!is_inside(g)) continue;
      *reinterpret_cast<Elements*>(output + place(g)) = results[g];
    }
  }
}

// T is the type in which elements are stored, C the type in which they are
// combined.
template <typename T, typename C, typename Bits = C>
__device__ void ReduceElements(const ReduceArraysParameters& p) {
  constexpr int64_t kBlockElements = ReduceArraysParameters::kThreads *
                                     ReduceArraysParameters::kThreadBytes /
                                     sizeof(T);
  constexpr int kVector = ReduceArraysParameters::kAccessBytes / sizeof(T);
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kBlockElements;
  if (p.is_aligned && begin + kBlockElements <= p.count) {
    ReduceBlock<T, C, Bits, kVector>(p, begin);
  } else {
    ReduceBlock<T, C, Bits, 1>(p, begin);
  }
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void reduce_float32(
    const __grid_constant__ ReduceArraysParameters p) {
  AwaitPrecedingKernel();
  ReduceElements<float, float>(p);
}

extern "C" __global__ void reduce_float64(
    const __grid_constant__ ReduceArraysParameters p) {
  AwaitPrecedingKernel();
  ReduceElements<double, double>(p);
}

extern "C" __global__ void reduce_float16(
    const __grid_constant__ ReduceArraysParameters p) {
  AwaitPrecedingKernel();
  ReduceElements<muster::float16, float>(p);
}

extern "C" __global__ void reduce_bfloat16(
    const __grid_constant__ ReduceArraysParameters p) {
  AwaitPrecedingKernel();
  ReduceElements<muster::bfloat16, float>(p);
}

extern "C" __global__ void reduce_int32(
    const __grid_constant__ ReduceArraysParameters p) {
  AwaitPrecedingKernel();
  ReduceElements<int32_t, int32_t, uint32_t>(p);
}

extern "C" __global__ void reduce_int64(
    const __grid_constant__ ReduceArraysParameters p) {
  AwaitPrecedingKernel();
  ReduceElements<int64_t, int64_t, uint64_t>(p);
}

MUSTER_SIMULATED_KERNELS(reduce_arrays, MUSTER_PLAIN_KERNEL(reduce_float32),
                         MUSTER_PLAIN_KERNEL(reduce_float64),
                         MUSTER_PLAIN_KERNEL(reduce_float16),
                         MUSTER_PLAIN_KERNEL(reduce_bfloat16),
                         MUSTER_PLAIN_KERNEL(reduce_int32),
                         MUSTER_PLAIN_KERNEL(reduce_int64))
