#ifndef COMMON_COMPUTE_KERNELS_CPU_VECTOR_MATH_H_
#define COMMON_COMPUTE_KERNELS_CPU_VECTOR_MATH_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "common/compute/kernels/vectorized.h"

// Transcendental functions of float32 that compilers can vectorize: no
// branches, tables or calls. Within 4 ulps of the exact value. NaN, infinities
// and subnormals are handled as in <cmath> unless stated otherwise. The
// polynomials are those of Cephes.
namespace muster {

MUSTER_INLINE float VectorExp(float x) {
  constexpr float kLog2E = 1.44269504088896341f;
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  // Adding and subtracting 1.5 * 2^23 rounds to an integer, which is in the low
  // bits of the sum.
  constexpr float kRounder = 12582912.0f;
  x = x < -105.0f ? -105.0f : x;  // exp() is 0 below.
  x = x > 89.0f ? 89.0f : x;      // exp() is infinite above.
  const float shifted = x * kLog2E + kRounder;
  const float n = shifted - kRounder;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // 2^n as two factors, because n may exceed the exponents of normal numbers.
  const int32_t exponent = static_cast<int32_t>(
      std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRounder));
  const uint32_t half = static_cast<uint32_t>(exponent >> 1);
  const uint32_t rest = static_cast<uint32_t>(exponent) - half;
  return p * std::bit_cast<float>((half + 127) << 23) *
         std::bit_cast<float>((rest + 127) << 23);
}

MUSTER_INLINE float VectorLog(float x) {
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kSqrtHalf = 0.707106781186547524f;
  constexpr float kMinNormal = 0x1p-126f;
  const bool is_subnormal = x < kMinNormal;
  const uint32_t bits = std::bit_cast<uint32_t>(is_subnormal ? x * 0x1p23f : x);
  float e =
      static_cast<float>(static_cast<int32_t>((bits >> 23) & 0xff) - 126) -
      (is_subnormal ? 23.0f : 0.0f);
  float m = std::bit_cast<float>((bits & 0x007fffff) | 0x3f000000);  // [0.5, 1)
  const bool is_low = m < kSqrtHalf;
  e = is_low ? e - 1.0f : e;
  m = (is_low ? m + m : m) - 1.0f;
  const float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  float y = p * m * z + e * kLn2Low - 0.5f * z;
  y = m + y + e * kLn2High;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  y = x == kInfinity ? kInfinity : y;
  y = x == 0.0f ? -kInfinity : y;
  // Returns NaN for NaN, too.
  return x >= 0.0f ? y : std::numeric_limits<float>::quiet_NaN();
}

// log(1 + u) for u >= 0, accurate if 1 + u rounds to 1.
MUSTER_INLINE float VectorLog1pOfPositive(float u) {
  const float w = 1.0f + u;
  const float corrected = VectorLog(w) * (u / (w - 1.0f));
  return w == 1.0f ? u : corrected;
}

// exp(x) - 1 for x <= 0.
MUSTER_INLINE float VectorExpm1OfNegative(float x) {
  // Uses the series near 0. Elsewhere there is no cancellation.
  float p = 1.0f / 5040;
  p = p * x + 1.0f / 720;
  p = p * x + 1.0f / 120;
  p = p * x + 1.0f / 24;
  p = p * x + 1.0f / 6;
  p = p * x + 0.5f;
  p = p * (x * x) + x;
  const float far = VectorExp(x) - 1.0f;
  return x > -0.5f ? p : far;
}

MUSTER_INLINE float VectorSigmoid(float x) {
  return 1.0f / (1.0f + VectorExp(-x));
}

MUSTER_INLINE float VectorTanh(float x) {
  const float magnitude = std::fabs(x);
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  p = p * z * x + x;
  const float far =
      std::copysign(1.0f - 2.0f / (VectorExp(2.0f * magnitude) + 1.0f), x);
  return magnitude < 0.625f ? p : far;
}

// Within 8 ulps. A rational minimax approximation on the interval where erf
// differs from 1 in float32; XLA and Eigen use the same one.
MUSTER_INLINE float VectorErf(float x) {
  constexpr float kOne = 3.7439211627767994f;
  x = x > kOne ? kOne : x;
  x = x < -kOne ? -kOne : x;
  const float z = x * x;
  float p = 0.00022905065861350646f;
  p = p * z + 0.0034082910107109506f;
  p = p * z + 0.050955695062380861f;
  p = p * z + 0.18520832239976145f;
  p = p * z + 1.128379143519084f;
  float q = -1.1791602954361697e-7f;
  q = q * z + 0.000023547966471313185f;
  q = q * z + 0.0010179625278914885f;
  q = q * z + 0.014070470171167667f;
  q = q * z + 0.11098505178285362f;
  q = q * z + 0.49746925110067538f;
  q = q * z + 1.0f;
  return x * p / q;
}

// log(1 + exp(x))
MUSTER_INLINE float VectorSoftplus(float x) {
  return (x < 0.0f ? 0.0f : x) +
         VectorLog1pOfPositive(VectorExp(-std::fabs(x)));
}

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CPU_VECTOR_MATH_H_
