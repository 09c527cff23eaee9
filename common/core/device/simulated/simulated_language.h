#ifndef COMMON_CORE_DEVICE_SIMULATED_SIMULATED_LANGUAGE_H_
#define COMMON_CORE_DEVICE_SIMULATED_SIMULATED_LANGUAGE_H_

#include <stddef.h>
#include <stdint.h>

#include <array>
#include <utility>

#include "absl/types/span.h"
#include "common/core/device/driver/kernel_image.h"

// The part of CUDA's device language that Muster's kernels use, as C++ that
// RunSimulatedGrid() runs. Only .cu files include this header, through
// device_language.h. Atomic operations exist for integers only: sums of floats
// in the order of arrival would not be reproducible.
//
// Equivalent to: CUDA C++ Programming Guide, "C++ Language Extensions".
namespace muster::simulated {

struct Index3 {
  uint32_t x, y, z;
};

// The position of the running thread.
struct Coordinates {
  Index3 thread, block, block_size, grid_size;
  void* shared_memory;
};
extern constinit thread_local Coordinates coordinates;

// A place in a kernel where threads wait for each other.
struct Site {
  const char* file;
  int line;
};

// Returns when all threads of the block have called it.
void AwaitBlock(Site site);

// An operation in which the lanes of `mask` take part, with `bits` of each.
struct WarpOperation {
  enum class Kind { kShuffle, kBallot };
  Kind kind = Kind::kShuffle;
  uint32_t mask = 0;
  uint64_t bits = 0;
  // For kShuffle: the lane whose bits to return.
  uint32_t from_lane = 0;
};

// Returns when all lanes of the mask have called it with the same mask and
// kind. kBallot returns a bit for each lane whose bits are not 0.
uint64_t ExchangeInWarp(const WarpOperation& operation, Site site);

inline uint32_t Lane() {
  const Coordinates& c = coordinates;
  return (c.thread.x +
          c.block_size.x * (c.thread.y + c.block_size.y * c.thread.z)) %
         32;
}

template <typename T>
T Shuffle(uint32_t mask, T value, uint32_t from_lane, Site site) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = ExchangeInWarp({.mask = mask, .bits = bits, .from_lane = from_lane},
                        site);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

// As in CUDA, a lane that would read beyond the warp reads its own value.
template <typename T>
T ShuffleFrom(uint32_t mask, T value, uint32_t from_lane, Site site) {
  return Shuffle(mask, value, from_lane < 32 ? from_lane : Lane(), site);
}

inline uint32_t Ballot(uint32_t mask, bool vote, Site site) {
  return static_cast<uint32_t>(
      ExchangeInWarp({.kind = WarpOperation::Kind::kBallot,
                      .mask = mask,
                      .bits = vote ? uint64_t{1} : uint64_t{0}},
                     site));
}

template <auto kKernel, typename... Arguments, size_t... kIndices>
void InvokeWith(void (*)(Arguments...), [[maybe_unused]] void** arguments,
                std::index_sequence<kIndices...>) {
  kKernel(*static_cast<Arguments*>(arguments[kIndices])...);
}

template <typename... Arguments>
std::index_sequence_for<Arguments...> IndicesOf(void (*)(Arguments...));

// Calls a kernel with the arguments whose addresses are in `arguments`.
template <auto kKernel>
void Invoke(void** arguments) {
  InvokeWith<kKernel>(kKernel, arguments, decltype(IndicesOf(kKernel))());
}

template <typename... Arguments>
constexpr std::array<uint32_t, sizeof...(Arguments)> SizesOf(
    void (*)(Arguments...)) {
  return {uint32_t{sizeof(Arguments)}...};
}

template <auto kKernel>
inline constexpr auto kArgumentBytes = SizesOf(kKernel);

}  // namespace muster::simulated

#define __global__
#define __device__ inline
// `__device__`, which precedes it, means inline.
#define __forceinline__
#define __grid_constant__
#define __constant__ static const
// One copy in a process: grids run one after the other. Not thread_local, which
// would take this memory from the stack of every thread of the process.
#define __shared__ static
#define __launch_bounds__(...)

#define threadIdx (::muster::simulated::coordinates.thread)
#define blockIdx (::muster::simulated::coordinates.block)
#define blockDim (::muster::simulated::coordinates.block_size)
#define gridDim (::muster::simulated::coordinates.grid_size)

#define MUSTER_SITE (::muster::simulated::Site{__FILE__, __LINE__})
#define __syncthreads() ::muster::simulated::AwaitBlock(MUSTER_SITE)
#define __syncwarp() \
  static_cast<void>(::muster::simulated::Ballot(~0u, true, MUSTER_SITE))
#define __shfl_sync(mask, value, lane) \
  ::muster::simulated::Shuffle((mask), (value), (lane) % 32, MUSTER_SITE)
#define __shfl_xor_sync(mask, value, lane_mask) \
  ::muster::simulated::ShuffleFrom(             \
      (mask), (value), ::muster::simulated::Lane() ^ (lane_mask), MUSTER_SITE)
#define __shfl_down_sync(mask, value, delta) \
  ::muster::simulated::ShuffleFrom(          \
      (mask), (value), ::muster::simulated::Lane() + (delta), MUSTER_SITE)
#define __shfl_up_sync(mask, value, delta) \
  ::muster::simulated::ShuffleFrom(        \
      (mask), (value), ::muster::simulated::Lane() - (delta), MUSTER_SITE)
#define __ballot_sync(mask, vote) \
  ::muster::simulated::Ballot((mask), (vote), MUSTER_SITE)
#define __any_sync(mask, vote) (__ballot_sync((mask), (vote)) != 0)

// Kernels of a stream run one after the other.
inline void AwaitPrecedingKernel() {}

inline void* DynamicSharedMemory() {
  return ::muster::simulated::coordinates.shared_memory;
}

inline uint32_t __umulhi(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(static_cast<uint64_t>(a) * b >> 32);
}

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

template <typename T>
T atomicAdd(T* address, T value) {
  static_assert(T{1} / T{2} == T{0}, "only integers: see the file's comment");
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}

template <typename T>
T atomicCAS(T* address, T expected, T value) {
  static_assert(T{1} / T{2} == T{0}, "only integers: see the file's comment");
  __atomic_compare_exchange_n(address, &expected, value, /*weak=*/false,
                              __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

// clang-format off
#define MUSTER_SIMULATED_KERNEL(kernel, has_barriers)       \
  { #kernel, has_barriers, ::muster::simulated::Invoke<&kernel>, \
    ::muster::simulated::kArgumentBytes<&kernel> }
// clang-format on
#define MUSTER_PLAIN_KERNEL(kernel) MUSTER_SIMULATED_KERNEL(kernel, false)
#define MUSTER_BARRIER_KERNEL(kernel) MUSTER_SIMULATED_KERNEL(kernel, true)
#define MUSTER_SIMULATED_KERNELS(name, ...)                                \
  namespace muster::simulated {                                            \
  ::absl::Span<const ::muster::SimulatedKernel> KernelsOf_##name() {       \
    static constexpr ::muster::SimulatedKernel kKernels[] = {__VA_ARGS__}; \
    return kKernels;                                                       \
  }                                                                        \
  }

#endif  // COMMON_CORE_DEVICE_SIMULATED_SIMULATED_LANGUAGE_H_
