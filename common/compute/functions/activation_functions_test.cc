#include "common/compute/functions/activation_functions.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace muster::functions {
namespace {

TEST(ActivationTest, GeluOfFloatsIsExactInItsTails) {
  for (int i = -900; i <= 900; ++i) {
    const float x = static_cast<float>(i) / 100;
    const double y = Gelu()(static_cast<double>(x));
    EXPECT_NEAR(Gelu()(x), y, 5e-6 * std::fabs(y)) << "of " << x;
    const double gradient = GeluGrad()(2.0, static_cast<double>(x));
    EXPECT_NEAR(GeluGrad()(2.0f, x), gradient, 1e-6) << "of " << x;
  }
}

TEST(ActivationTest, GeluOfExtremesIsThatOfDoubles) {
  const float max = std::numeric_limits<float>::max();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Gelu()(max), max);
  EXPECT_EQ(Gelu()(-max), 0);
  EXPECT_EQ(Gelu()(infinity), infinity);
  EXPECT_TRUE(std::isnan(Gelu()(std::nanf(""))));
  EXPECT_EQ(GeluGrad()(3.0f, max), 3);
  EXPECT_EQ(GeluGrad()(3.0f, -max), 0);
  EXPECT_TRUE(std::isnan(GeluGrad()(1.0f, std::nanf(""))));
}

}  // namespace
}  // namespace muster::functions
