#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEPTHWISE_PIXELS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEPTHWISE_PIXELS_H_

#include "common/compute/kernels/cuda/device_code/depthwise_parameters.h"
#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/element_group.h"
#include "common/core/device/device_language.h"

// Reads and writes of depthwise.cu: vectors of channels for the pixels of a
// row.
namespace muster::internal {

// Returns true if `i` is in [0, extent).
__device__ bool IsIn(int32_t i, int32_t extent) {
  return static_cast<uint32_t>(i) < static_cast<uint32_t>(extent);
}

// Adjacent channels of a pixel, as words: compilers would keep each element of
// 16 bits in a separate register.
template <typename T, int kVector>
struct Pixel {
  static constexpr int kPerWord = 4 / sizeof(T);
  static constexpr int kWords = (kVector + kPerWord - 1) / kPerWord;

  __device__ float operator[](int v) const {
    if constexpr (kPerWord == 1) {
      return BitCast<float>(words[v]);
    } else {
      return Widened(
          BitCast<T>(static_cast<uint16_t>(words[v / 2] >> (v % 2 * 16))));
    }
  }

  __device__ void Set(int v, T value) {
    if constexpr (kPerWord == 1) {
      words[v] = BitCast<uint32_t>(value);
    } else {
      words[v / 2] |= uint32_t{BitCast<uint16_t>(value)} << (v % 2 * 16);
    }
  }

  uint32_t words[kWords] = {};
};

// Loads the channels of kCount pixels of a row, from pixel `first` on; those
// outside of the row are 0. All loads are in flight at the same time.
template <typename T, int kVector, int kCount>
__device__ __forceinline__ void LoadPixels(
    const DepthwiseParameters& p, const T* row, int32_t first, int32_t extent,
    Pixel<T, kVector> (&pixels)[kCount]) {
  using Group = ElementGroup<T, kVector>;
  if (kVector == 1 || !p.is_aligned) {
    MUSTER_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if (!IsIn(first + i, extent)) continue;
      MUSTER_UNROLL
      for (int v = 0; v < kVector; ++v) {
        pixels[i].Set(v, row[(first + i) * p.channels + v]);
      }
    }
    return;
  }
  if constexpr (kVector > 1) {
    MUSTER_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if (!IsIn(first + i, extent)) continue;
      pixels[i] = BitCast<Pixel<T, kVector>>(
          *reinterpret_cast<const Group*>(row + (first + i) * p.channels));
    }
  }
}

template <typename T, int kVector, int kCount>
__device__ __forceinline__ void StorePixels(
    const DepthwiseParameters& p, T* row, int32_t first, int32_t extent,
    const float (&sums)[kCount][kVector]) {
  using Group = ElementGroup<T, kVector>;
  MUSTER_UNROLL
  for (int i = 0; i < kCount; ++i) {
    if (!IsIn(first + i, extent)) continue;
    T* const to = row + (first + i) * p.channels;
    Group group;
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) {
      group.values[v] = ConvertNumber<T>(sums[i][v]);
    }
    if (kVector == 1 || p.is_aligned) {
      *reinterpret_cast<Group*>(to) = group;
    } else {
      MUSTER_UNROLL
      for (int v = 0; v < kVector; ++v) to[v] = group.values[v];
    }
  }
}

// Adds the products of the channels of two pixels.
template <typename T, int kVector>
__device__ __forceinline__ void AddProducts(const Pixel<T, kVector>& a,
                                            const Pixel<T, kVector>& b,
                                            float (&sums)[kVector]) {
  MUSTER_UNROLL
  for (int v = 0; v < kVector; ++v) sums[v] += a[v] * b[v];
}

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEPTHWISE_PIXELS_H_
