#ifndef COMMON_COMPUTE_KERNELS_CUDA_TESTING_LIBRARY_ELEMENTS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_TESTING_LIBRARY_ELEMENTS_H_

#include <bit>
#include <cstdint>
#include <type_traits>

// Reads and writes elements as doubles, for fakes of NVIDIA's libraries.
namespace muster {

template <typename T>
double LoadDouble(const void* data, int64_t index) {
  const T element = static_cast<const T*>(data)[index];
  if constexpr (std::is_same_v<T, double>) {
    return element;
  } else {
    return static_cast<float>(element);
  }
}

template <typename T>
void StoreDouble(double value, void* data, int64_t index) {
  if constexpr (std::is_same_v<T, double>) {
    static_cast<T*>(data)[index] = value;
  } else {
    static_cast<T*>(data)[index] = static_cast<T>(static_cast<float>(value));
  }
}

// Rounds a float32 to the 10 bits of mantissa that tensor cores read.
inline double RoundToTensorFloat32(double x) {
  constexpr uint32_t kHalf = 1u << 12;
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  return std::bit_cast<float>((bits + kHalf) & ~(2 * kHalf - 1));
}

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_TESTING_LIBRARY_ELEMENTS_H_
