#include "common/compute/kernels/cpu/vector_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/base/attributes.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Returns a sample of all floats of both signs.
std::vector<float> Samples() {
  std::vector<float> samples;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 1021 * 16) {
    samples.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (int i = -12000; i <= 12000; ++i) samples.push_back(i * 0.01f);
  return samples;
}

double Ulp(double value) {
  const float magnitude = static_cast<float>(std::fabs(value));
  if (magnitude < std::numeric_limits<float>::min()) return 0x1p-149;
  return std::nextafter(magnitude, kInfinity) - static_cast<double>(magnitude);
}

template <typename Function>
struct Map {
  MUSTER_INLINE static void Run(Function function, int64_t count,
                                const float* in, float* out) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) out[i] = function(in[i]);
  }
};

// Checks all samples in [low, high] in scalar and in vector code.
template <typename Function>
void ExpectWithinUlps(Function function, double (*truth)(double), double ulps,
                      float low, float high) {
  std::vector<float> samples;
  for (const float x : Samples()) {
    if (x >= low && x <= high) samples.push_back(x);
  }
  std::vector<float> vectorized(samples.size());
  RunVectorized<Map<Function>>(function, static_cast<int64_t>(samples.size()),
                               samples.data(), vectorized.data());
  for (size_t i = 0; i < samples.size(); ++i) {
    const double wanted = truth(samples[i]);
    for (const float got : {function(samples[i]), vectorized[i]}) {
      if (std::isinf(static_cast<float>(wanted))) {
        ASSERT_EQ(got, static_cast<float>(wanted)) << "at " << samples[i];
      } else {
        ASSERT_LE(std::fabs(got - wanted), ulps * Ulp(wanted))
            << "at " << samples[i] << ": " << got << ", not " << wanted;
      }
    }
  }
  EXPECT_TRUE(std::isnan(function(std::numeric_limits<float>::quiet_NaN())));
}

TEST(VectorMathTest, ExpIsAccurateEverywhere) {
  ExpectWithinUlps([](float x)
                       ABSL_ATTRIBUTE_ALWAYS_INLINE { return VectorExp(x); },
                   std::exp, 4, -kInfinity, kInfinity);
}

TEST(VectorMathTest, LogIsAccurateForAllPositiveNumbers) {
  ExpectWithinUlps([](float x)
                       ABSL_ATTRIBUTE_ALWAYS_INLINE { return VectorLog(x); },
                   std::log, 4, 0, kInfinity);
  EXPECT_EQ(VectorLog(-0.0f), -kInfinity);
  EXPECT_TRUE(std::isnan(VectorLog(-1.0f)));
}

TEST(VectorMathTest, Log1pIsAccurateForSmallNumbers) {
  ExpectWithinUlps(
      [](float x)
          ABSL_ATTRIBUTE_ALWAYS_INLINE { return VectorLog1pOfPositive(x); },
      std::log1p, 4, 0, 1e30f);
}

TEST(VectorMathTest, Expm1IsAccurateForSmallNumbers) {
  ExpectWithinUlps(
      [](float x)
          ABSL_ATTRIBUTE_ALWAYS_INLINE { return VectorExpm1OfNegative(x); },
      std::expm1, 4, -kInfinity, 0);
}

TEST(VectorMathTest, TanhIsAccurateEverywhere) {
  ExpectWithinUlps([](float x)
                       ABSL_ATTRIBUTE_ALWAYS_INLINE { return VectorTanh(x); },
                   std::tanh, 4, -kInfinity, kInfinity);
}

TEST(VectorMathTest, ErfIsAccurateEverywhere) {
  ExpectWithinUlps([](float x)
                       ABSL_ATTRIBUTE_ALWAYS_INLINE { return VectorErf(x); },
                   std::erf, 8, -kInfinity, kInfinity);
}

TEST(VectorMathTest, SigmoidIsAccurateWhereItIsNormal) {
  ExpectWithinUlps(
      [](float x) ABSL_ATTRIBUTE_ALWAYS_INLINE { return VectorSigmoid(x); },
      [](double x) { return 1 / (1 + std::exp(-x)); }, 4, -87, kInfinity);
  EXPECT_EQ(VectorSigmoid(-kInfinity), 0.0f);
}

TEST(VectorMathTest, SoftplusIsAccurateEverywhere) {
  ExpectWithinUlps(
      [](float x) ABSL_ATTRIBUTE_ALWAYS_INLINE { return VectorSoftplus(x); },
      [](double x) {
        return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
      },
      6, -kInfinity, kInfinity);
}

}  // namespace
}  // namespace muster
