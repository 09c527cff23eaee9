#ifndef COMMON_COMPUTE_KERNELS_CPU_LANES_H_
#define COMMON_COMPUTE_KERNELS_CPU_LANES_H_

#include <cstdint>
#include <cstring>
#include <limits>

#include "common/compute/kernels/vectorized.h"

// Reductions of an array. Compilers must not reorder floating-point sums, so
// the order is explicit: sixteen partial results, independent of the vector
// width. Results are bit-identical on all machines.
namespace muster {

// gcc and clang compile arithmetic on this type to the available vector
// instructions.
typedef float FloatLanes __attribute__((vector_size(64)));
inline constexpr int64_t kLaneCount = 16;

// F has Start(), operator()(FloatLanes, FloatLanes) and operator()(float,
// float).
template <typename F>
MUSTER_INLINE float ReduceLanes(F f, int64_t count, const float* x) {
  float result = f.Start();
  int64_t i = 0;
  if (count >= kLaneCount) {
    FloatLanes partial;
    std::memcpy(&partial, x, sizeof(partial));
    for (i = kLaneCount; i + kLaneCount <= count; i += kLaneCount) {
      FloatLanes next;
      std::memcpy(&next, x + i, sizeof(next));
      partial = f(partial, next);
    }
    for (int64_t width = kLaneCount / 2; width > 0; width /= 2) {
      for (int64_t k = 0; k < width; ++k) {
        partial[k] = f(static_cast<float>(partial[k]),
                       static_cast<float>(partial[k + width]));
      }
    }
    result = partial[0];
  }
  for (; i < count; ++i) result = f(result, x[i]);
  return result;
}

struct SumLanes {
  MUSTER_INLINE static float Start() { return 0; }
  template <typename T>
  MUSTER_INLINE T operator()(T a, T b) const {
    return a + b;
  }
};

// NaN if any element is NaN.
struct MaxLanes {
  MUSTER_INLINE static float Start() {
    return -std::numeric_limits<float>::infinity();
  }
  template <typename T>
  MUSTER_INLINE T operator()(T a, T b) const {
    const T larger = a > b ? a : b;
    return a == a ? larger : a;
  }
};

struct MinLanes {
  MUSTER_INLINE static float Start() {
    return std::numeric_limits<float>::infinity();
  }
  template <typename T>
  MUSTER_INLINE T operator()(T a, T b) const {
    const T smaller = a < b ? a : b;
    return a == a ? smaller : a;
  }
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CPU_LANES_H_
