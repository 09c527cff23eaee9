#include "common/compute/optimizers/loss_scale.h"

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A scale that the rule of a loss scale updates. tests/golden compares the rule
// with Keras.
class Scale {
 public:
  Scale(float value, int growth_steps) : value_(value) {
    auto rule = UpdateRule::Create(OptimizerOfLossScale(
        LossScaleOptimizer(Sgd(), {.dynamic_growth_steps = growth_steps})
            .message()));
    EXPECT_OK(rule.status());
    rule_ = *std::move(rule);
  }

  // Reports the end of a step that was computed with `scale`.
  float Step(float scale, bool is_finite) {
    const float gradient = is_finite ? scale : -scale;
    float* const slots[] = {&counter_};
    rule_->Apply(0, 1, &gradient, &value_, slots);
    return value_;
  }
  float Step(bool is_finite) { return Step(value_, is_finite); }
  float counter() const { return counter_; }

 private:
  std::unique_ptr<UpdateRule> rule_;
  float value_;
  float counter_ = 0;
};

TEST(LossScaleRule, GrowsAndHalves) {
  Scale scale(8, 2);
  std::vector<float> values;
  for (const bool is_finite : {true, true, true, false, true, true}) {
    values.push_back(scale.Step(is_finite));
  }
  EXPECT_THAT(values, ElementsAre(8, 16, 16, 8, 8, 16));
}

TEST(LossScaleRule, WorkersThatUsedOneScaleHalveItOnce) {
  Scale scale(8, 100);
  EXPECT_EQ(scale.Step(8, false), 4);
  EXPECT_EQ(scale.Step(8, false), 4);
  EXPECT_EQ(scale.Step(8, true), 4);
  EXPECT_EQ(scale.counter(), 1);
  EXPECT_EQ(scale.Step(4, false), 2);
  EXPECT_EQ(scale.Step(8, false), 2);
  EXPECT_EQ(scale.counter(), 0);
}

TEST(LossScaleRule, StaysFiniteAndAboveZero) {
  Scale large(std::ldexp(1.0f, 127), 1);
  EXPECT_EQ(large.Step(true), std::ldexp(1.0f, 127));
  EXPECT_EQ(large.counter(), 0);
  const float least = std::numeric_limits<float>::denorm_min();
  Scale small(least, 1);
  EXPECT_EQ(small.Step(false), least);
}

TEST(LossScaleRule, ChecksItsOptions) {
  const auto status_of = [](const LossScaleOptions& options) {
    return UpdateRule::Create(LossScaleOptimizer(Adam(), options)).status();
  };
  EXPECT_OK(status_of({}));
  EXPECT_THAT(status_of({.initial_scale = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("adam: loss_scale: initial_scale is 0")));
  EXPECT_THAT(status_of({.initial_scale = 1e300}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("that float32 can hold")));
  EXPECT_THAT(status_of({.dynamic_growth_steps = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("dynamic_growth_steps is 0; expected at "
                                 "least 1")));
}

TEST(LossScaleRule, AbsentFieldsHaveKerasDefaults) {
  ASSERT_OK_AND_ASSIGN(const proto::Optimizer::LossScale complete,
                       CompleteLossScale({}));
  EXPECT_EQ(complete.initial_scale(), 32768);
  EXPECT_EQ(complete.dynamic_growth_steps(), 2000);
}

// The weights use the rule of the inner optimizer.
TEST(LossScaleRule, IsNotThatOfTheWeights) {
  ASSERT_OK_AND_ASSIGN(const auto rule,
                       UpdateRule::Create(LossScaleOptimizer(Adam())));
  EXPECT_EQ(rule->name(), "adam");
}

}  // namespace
}  // namespace muster
