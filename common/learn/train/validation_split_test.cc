#include <cmath>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/learn/train/epoch_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

const auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ValidationSplitTest, RoundsAsKeras) {
  EXPECT_EQ(TrainingExampleCount(11, 0.3).value(), 7);
  EXPECT_EQ(TrainingExampleCount(10, 0.1).value(), 9);
  EXPECT_EQ(TrainingExampleCount(60000, 0.1).value(), 54000);
  EXPECT_EQ(TrainingExampleCount(2, 0.5).value(), 1);
  EXPECT_EQ(TrainingExampleCount(100, 1e-9).value(), 99);
}

TEST(ValidationSplitTest, RefusesInvalidFractionsAndEmptyParts) {
  for (const double share : {-0.1, 1.0, 7.0, std::nan("")}) {
    EXPECT_THAT(TrainingExampleCount(10, share).status(),
                StatusIs(kInvalid, HasSubstr("at least 0 and below 1")));
  }
  EXPECT_THAT(TrainingExampleCount(3, 0.9).status(),
              StatusIs(kInvalid,
                       HasSubstr("leaves 0 of 3 examples to train on and 3")));
  EXPECT_THAT(TrainingExampleCount(3, 1e-18).status(),
              StatusIs(kInvalid,
                       HasSubstr("leaves 3 of 3 examples to train on and 0")));
}

}  // namespace
}  // namespace muster
