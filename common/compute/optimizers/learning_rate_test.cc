#include "common/compute/optimizers/learning_rate.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// tests/golden compares the first 20 steps of each schedule with Keras. These
// tests cover other steps.

float RateAt(const LearningRateSchedule& schedule, int64_t step) {
  return LearningRate::Create(schedule.message()).value().At(step);
}

proto::LearningRateSchedule Parse(const std::string& text) {
  proto::LearningRateSchedule schedule;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &schedule));
  return schedule;
}

TEST(LearningRate, ANumberIsConstant) {
  ASSERT_OK_AND_ASSIGN(const LearningRate rate, LearningRate::Create(0.25));
  EXPECT_TRUE(rate.is_number());
  EXPECT_EQ(rate.At(0), 0.25f);
  EXPECT_EQ(rate.At(1'000'000), 0.25f);
}

TEST(LearningRate, PiecewiseChangesAfterItsBoundary) {
  const auto schedule = PiecewiseConstantDecay(
      {.boundaries = {10, 20}, .values = {1.0, 0.5, 0.25}});
  EXPECT_EQ(RateAt(schedule, 10), 1.0f);
  EXPECT_EQ(RateAt(schedule, 11), 0.5f);
  EXPECT_EQ(RateAt(schedule, 20), 0.5f);
  EXPECT_EQ(RateAt(schedule, 1'000'000'000), 0.25f);
}

TEST(LearningRate, DecaysEndAtTheFinalRate) {
  const auto polynomial = PolynomialDecay({.initial_learning_rate = 1.0,
                                           .decay_steps = 10,
                                           .end_learning_rate = 0.5});
  EXPECT_EQ(RateAt(polynomial, 10), 0.5f);
  EXPECT_EQ(RateAt(polynomial, 1000), 0.5f);
  const auto cosine = CosineDecay(
      {.initial_learning_rate = 1.0, .decay_steps = 10, .alpha = 0.25});
  EXPECT_EQ(RateAt(cosine, 0), 1.0f);
  EXPECT_FLOAT_EQ(RateAt(cosine, 1000), 0.25f);
}

TEST(LearningRate, AbsentArgumentsHaveKerasDefaults) {
  const auto schedule =
      Parse("polynomial_decay { initial_learning_rate: 1 decay_steps: 10 }");
  EXPECT_EQ(
      RateAt(schedule, 5),
      RateAt(PolynomialDecay({.initial_learning_rate = 1, .decay_steps = 10}),
             5));
  EXPECT_EQ(RateAt(schedule, 10), 0.0001f);
}

TEST(LearningRate, ErrorsNameTheArgument) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(LearningRate::Create(-1.0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("learning_rate is -1")));
  EXPECT_THAT(LearningRate::Create(nan),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("learning_rate is nan")));
  const std::vector<std::pair<LearningRateSchedule, std::string>> cases = {
      {ExponentialDecay({.initial_learning_rate = 0.1, .decay_rate = 0.5}),
       "exponential_decay: decay_steps is 0"},
      {InverseTimeDecay(
           {.initial_learning_rate = 0.1, .decay_steps = 5, .decay_rate = -2}),
       "inverse_time_decay: decay_rate is -2"},
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
      {Parse("cosine_decay { decay_steps: 9 }"),
       "cosine_decay: initial_learning_rate is missing"},
      {Parse("cosine_decay { initial_learning_rate: 1 }"),
       "cosine_decay: decay_steps is missing"},
      {Parse("exponential_decay { initial_learning_rate: 1 decay_steps: 2 "
             "}"),
       "exponential_decay: decay_rate is missing"},
  };
  for (const auto& [schedule, message] : cases) {
    EXPECT_THAT(
        LearningRate::Create(schedule.message()),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
}

TEST(LearningRate, ErrorsListTheSchedules) {
  for (const std::string text : {"", "constant: 0.1"}) {
    EXPECT_THAT(LearningRate::Create(Parse(text)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("names no schedule"),
                               HasSubstr("cosine_decay"))));
  }
}

}  // namespace
}  // namespace muster
