#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_ELEMENT_GROUP_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_ELEMENT_GROUP_H_

#include "common/compute/kernels/cuda/device_code/device_elements.h"
#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/core/device/device_language.h"

// Adjacent elements that one thread loads or stores with one instruction, for
// .cu files only. A GPU reaches its memory bandwidth if each thread has about
// 16 bytes of each array in flight.
namespace muster::internal {

inline constexpr int kAccessBytesMax = 16;

template <typename E, int kCount>
struct alignas(sizeof(E) * kCount < kAccessBytesMax
                   ? sizeof(E) * kCount
                   : kAccessBytesMax) ElementGroup {
  E values[kCount];
};

// The portable conversions of float16.h take many instructions.
__device__ float Widened(bfloat16 value) { return static_cast<float>(value); }
__device__ float Widened(float16 value) {
#if defined(__CUDA_ARCH__)
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
#else
  return static_cast<float>(value);
#endif
}

// Rounds two numbers to a 16-bit format and returns them as the lower and the
// upper half of a word. Any NaN becomes the format's standard NaN.
template <typename E>
__device__ uint32_t RoundedPair(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t pair;
  if constexpr (kIsSame<E, bfloat16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
#else
  return uint32_t{E(high).bits} << 16 | E(low).bits;
#endif
}

// Returns element k of an array of words. Compilers would keep each element of
// an array of 16-bit elements in a separate register.
template <typename E>
__device__ __forceinline__ float ElementOfWords(const uint32_t* words, int k) {
  if constexpr (sizeof(E) == 4) {
    return BitCast<float>(words[k]);
  } else {
    return Widened(
        BitCast<E>(static_cast<uint16_t>(words[k / 2] >> (k % 2 * 16))));
  }
}

// Returns the values as elements of E.
template <typename E, int kCount>
__device__ __forceinline__ auto WordsOf(const float (&values)[kCount]) {
  constexpr int kPerWord = 4 / sizeof(E);
  ElementGroup<uint32_t, kCount / kPerWord> group;
  MUSTER_UNROLL
  for (int i = 0; i < kCount / kPerWord; ++i) {
    if constexpr (kPerWord == 1) {
      group.values[i] = BitCast<uint32_t>(values[i]);
    } else {
      group.values[i] = RoundedPair<E>(values[2 * i], values[2 * i + 1]);
    }
  }
  return group;
}

// Starts a copy of kBytes (4, 8 or 16) bytes from global to shared memory. The
// thread waits for the bytes in AwaitCopies(); other threads must not read
// them.
template <int kBytes>
__device__ __forceinline__ void CopyToShared(void* to, const void* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
               :
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
                 "l"(__cvta_generic_to_global(from)), "n"(kBytes)
               : "memory");
#else
  __builtin_memcpy(to, from, kBytes);
#endif
}

__device__ __forceinline__ void AwaitCopies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" : : : "memory");
#endif
}

// True if the address is aligned for a Group.
template <typename Group>
__device__ bool IsAlignedFor(const void* address) {
  return reinterpret_cast<uint64_t>(address) % alignof(Group) == 0;
}

// True if no group of kCount positions that begins at a multiple of kCount
// crosses the end of a row of the innermost axis.
template <int kCount>
__device__ bool HasWholeGroups(const DeviceLayout& layout) {
  return layout.rank <= 1 ||
         static_cast<uint64_t>(layout.extents[layout.rank - 1]) % kCount == 0;
}

__device__ int64_t InnermostStride(const DeviceLayout& layout) {
  return layout.rank == 0 ? 0 : layout.strides[layout.rank - 1];
}

// True if a layout maps each group of kCount positions to adjacent offsets.
template <int kCount>
__device__ bool HasDenseGroups(const DeviceLayout& layout) {
  return InnermostStride(layout) == 1 && HasWholeGroups<kCount>(layout);
}

// Returns layout(position), for positions below 2^32 unless the rank is 1 or
// less.
__device__ __forceinline__ int64_t OffsetOf(const DeviceLayout& layout,
                                            int64_t position) {
  if (layout.rank <= 1) {
    return layout.offset + position * InnermostStride(layout);
  }
  int64_t offset = layout.offset;
  uint32_t rest = static_cast<uint32_t>(position);
  MUSTER_KEEP_LOOP
  for (int axis = layout.rank - 1; axis > 0; --axis) {
    const uint32_t extent = static_cast<uint32_t>(layout.extents[axis]);
    offset += static_cast<int64_t>(rest % extent) * layout.strides[axis];
    rest /= extent;
  }
  return offset + static_cast<int64_t>(rest) * layout.strides[0];
}

// Sets offsets[k] = layout(first + k), for positions below 2^32, with one loop
// over the axes for all positions.
template <int kCount>
__device__ __forceinline__ void OffsetsInUnevenRows(
    const DeviceLayout& layout, int64_t first, int64_t (&offsets)[kCount]) {
  uint32_t rest[kCount];
  MUSTER_UNROLL
  for (int k = 0; k < kCount; ++k) {
    rest[k] = static_cast<uint32_t>(first) + k;
    offsets[k] = layout.offset;
  }
  MUSTER_KEEP_LOOP
  for (int axis = layout.rank - 1; axis >= 0; --axis) {
    const uint32_t extent = static_cast<uint32_t>(layout.extents[axis]);
    MUSTER_UNROLL
    for (int k = 0; k < kCount; ++k) {
      const uint32_t quotient = rest[k] / extent;
      offsets[k] += static_cast<int64_t>(rest[k] - quotient * extent) *
                    layout.strides[axis];
      rest[k] = quotient;
    }
  }
}

// Sets offsets[k] = layout(first + k). Positions are below 2^32 unless kCount
// is 1.
template <int kCount>
__device__ __forceinline__ void OffsetsOf(const DeviceLayout& layout,
                                          int64_t first,
                                          int64_t (&offsets)[kCount]) {
  if constexpr (kCount == 1) {
    offsets[0] = layout(first);
  } else if (HasWholeGroups<kCount>(layout)) {
    const int64_t begin = OffsetOf(layout, first);
    const int64_t stride = InnermostStride(layout);
    MUSTER_UNROLL
    for (int k = 0; k < kCount; ++k) offsets[k] = begin + k * stride;
  } else {
    OffsetsInUnevenRows(layout, first, offsets);
  }
}

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_ELEMENT_GROUP_H_
