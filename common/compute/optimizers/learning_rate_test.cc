#include "common/compute/optimizers/learning_rate.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// The values under 20 steps of each schedule are checked against Keras in
// tests/golden; here is what lies outside of them.

TEST(LearningRate, ANumberStaysWhatItIs) {
  EXPECT_EQ(LearningRateAt(LearningRateOption(0.25).value(), 0), 0.25f);
  EXPECT_EQ(LearningRateAt(LearningRateOption(0.25).value(), 1'000'000), 0.25f);
}

TEST(LearningRate, PiecewiseChangesAfterItsBoundary) {
  const auto rate = PiecewiseConstantDecay(
      {.boundaries = {10, 20}, .values = {1.0, 0.5, 0.25}});
  EXPECT_EQ(LearningRateAt(rate, 10), 1.0f);
  EXPECT_EQ(LearningRateAt(rate, 11), 0.5f);
  EXPECT_EQ(LearningRateAt(rate, 20), 0.5f);
  EXPECT_EQ(LearningRateAt(rate, 1'000'000'000), 0.25f);
}

TEST(LearningRate, DecaysEndWhereTheyShould) {
  const auto polynomial = PolynomialDecay({.initial_learning_rate = 1.0,
                                           .decay_steps = 10,
                                           .end_learning_rate = 0.5});
  EXPECT_EQ(LearningRateAt(polynomial, 10), 0.5f);
  EXPECT_EQ(LearningRateAt(polynomial, 1000), 0.5f);
  const auto cosine = CosineDecay(
      {.initial_learning_rate = 1.0, .decay_steps = 10, .alpha = 0.25});
  EXPECT_EQ(LearningRateAt(cosine, 0), 1.0f);
  EXPECT_FLOAT_EQ(LearningRateAt(cosine, 1000), 0.25f);
}

TEST(LearningRate, MistakesNameTheArgument) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<proto::LearningRate, std::string>> cases = {
      {proto::LearningRate(), "learning_rate is not set"},
      {LearningRateOption(-1.0).value(), "learning_rate is -1"},
      {LearningRateOption(nan).value(), "learning_rate is nan"},
      {ExponentialDecay({.initial_learning_rate = 0.1, .decay_rate = 0.5}),
       "decay_steps is 0"},
      {InverseTimeDecay(
           {.initial_learning_rate = 0.1, .decay_steps = 5, .decay_rate = -2}),
       "decay_rate is -2"},
      {PiecewiseConstantDecay({.boundaries = {1}, .values = {1}}),
       "one value more"},
      {PiecewiseConstantDecay({.boundaries = {5, 5}, .values = {1, 2, 3}}),
       "boundaries[1] is 5"},
      {PolynomialDecay(
           {.initial_learning_rate = 1, .decay_steps = 1, .power = nan}),
       "power is nan"},
      {CosineDecay(
           {.initial_learning_rate = 1, .decay_steps = 1, .warmup_steps = 4}),
       "warmup_target is not"},
  };
  for (const auto& [learning_rate, message] : cases) {
    EXPECT_THAT(
        ValidateLearningRate(learning_rate),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
}

}  // namespace
}  // namespace muster
