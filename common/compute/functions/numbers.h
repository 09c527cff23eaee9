#ifndef COMMON_COMPUTE_FUNCTIONS_NUMBERS_H_
#define COMMON_COMPUTE_FUNCTIONS_NUMBERS_H_

#include "common/core/base/host_device.h"
#include "common/core/tensor/float16.h"

// Properties of numbers, and conversions between them, for the host and for
// device kernels.
namespace muster {

template <typename C>
inline constexpr bool kIsInteger = C(1) / C(2) == C(0);
template <typename C>
inline constexpr bool kIsSigned = C(-1) < C(0);
template <typename A, typename B>
inline constexpr bool kIsSame = false;
template <typename A>
inline constexpr bool kIsSame<A, A> = true;

template <int kBytes>
struct UnsignedOfSize;
template <>
struct UnsignedOfSize<1> {
  using type = uint8_t;
};
template <>
struct UnsignedOfSize<2> {
  using type = uint16_t;
};
template <>
struct UnsignedOfSize<4> {
  using type = uint32_t;
};
template <>
struct UnsignedOfSize<8> {
  using type = uint64_t;
};
template <typename C>
using UnsignedOf = typename UnsignedOfSize<sizeof(C)>::type;

// Wraps around on overflow. Signed overflow is undefined behaviour in C++,
// which data must not be able to trigger.
template <typename C>
MUSTER_HOST_DEVICE C WrappingAdd(C a, C b) {
  if constexpr (kIsInteger<C>) {
    using U = UnsignedOf<C>;
    return static_cast<C>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}
template <typename C>
MUSTER_HOST_DEVICE C WrappingSub(C a, C b) {
  if constexpr (kIsInteger<C>) {
    using U = UnsignedOf<C>;
    return static_cast<C>(static_cast<U>(a) - static_cast<U>(b));
  } else {
    return a - b;
  }
}
template <typename C>
MUSTER_HOST_DEVICE C WrappingMul(C a, C b) {
  if constexpr (kIsInteger<C>) {
    using U = UnsignedOf<C>;
    // Widened, because uint16_t would be promoted to int, which overflows.
    return static_cast<C>(static_cast<U>(uint64_t{static_cast<U>(a)} *
                                         uint64_t{static_cast<U>(b)}));
  } else {
    return a * b;
  }
}

template <typename C>
MUSTER_HOST_DEVICE bool IsNanNumber(C x) {
  return x != x;
}

// Compute 2^x and 1 / x within 2 units in the last place, with one instruction
// on a GPU. On a GPU, results below 2^-126 are 0.
MUSTER_HOST_DEVICE inline float QuickExp2(float x) {
#if defined(__CUDA_ARCH__)
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return exp2(x);
#endif
}
MUSTER_HOST_DEVICE inline float QuickReciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float reciprocal;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(x));
  return reciprocal;
#else
  return 1 / x;
#endif
}

// Converts as the op Cast does: truncates; values out of range become the
// nearest value, NaN becomes 0.
template <typename To, typename From>
MUSTER_HOST_DEVICE To ConvertNumber(From value) {
  if constexpr (kIsSame<To, bool>) {
    return value != From(0);
  } else if constexpr (kIsSame<To, bfloat16> || kIsSame<To, float16>) {
    return To(static_cast<float>(value));
  } else if constexpr (kIsInteger<To> && !kIsInteger<From>) {
    constexpr int kDigits = static_cast<int>(sizeof(To)) * 8 - kIsSigned<To>;
    // The first value above the range, a power of 2.
    constexpr double kBound =
        static_cast<double>(uint64_t{1} << (kDigits - 1)) * 2;
    constexpr To kMax = static_cast<To>(~uint64_t{0} >> (64 - kDigits));
    if (IsNanNumber(value)) return To(0);
    if (value >= kBound) return kMax;
    if (value <= (kIsSigned<To> ? -kBound : 0.0)) {
      return kIsSigned<To> ? static_cast<To>(-kMax - 1) : To(0);
    }
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace muster

#endif  // COMMON_COMPUTE_FUNCTIONS_NUMBERS_H_
