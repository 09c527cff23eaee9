#include "coordinator/credit_window.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr CreditWindow::Options kOptions = {
    .work_ahead = absl::Milliseconds(20),
    .closures_max = 1000,
    .closures_at_start = 8,
};

TEST(CreditWindowTest, StartsSmallBecauseThePaceIsUnknown) {
  EXPECT_EQ(CreditWindow(1, kOptions).size(), 8);
  EXPECT_EQ(CreditWindow(6, kOptions).size(), 12);
}

TEST(CreditWindowTest, HoldsAFixedTimeOfWork) {
  CreditWindow window(1, kOptions);
  window.Observe(10, absl::Milliseconds(1));
  EXPECT_EQ(window.size(), 200);
}

TEST(CreditWindowTest, IsBoundedForClosuresThatTakeNoTime) {
  CreditWindow window(1, kOptions);
  window.Observe(1000, absl::ZeroDuration());
  EXPECT_EQ(window.size(), 1000);
}

TEST(CreditWindowTest, KeepsOneToRunNextHoweverSlowTheClosures) {
  CreditWindow window(3, kOptions);
  window.Observe(1, absl::Seconds(100));
  EXPECT_EQ(window.size(), 6);
}

TEST(CreditWindowTest, FollowsAChangeOfPace) {
  CreditWindow window(1, kOptions);
  window.Observe(100, absl::Milliseconds(1));
  for (int i = 0; i < 50; ++i) window.Observe(10, absl::Milliseconds(100));
  EXPECT_EQ(window.size(), 2);
}

TEST(CreditWindowTest, IgnoresInvalidReports) {
  CreditWindow window(1, kOptions);
  window.Observe(0, absl::Seconds(1));
  window.Observe(-5, absl::Seconds(1));
  window.Observe(5, -absl::Seconds(1));
  EXPECT_EQ(window.size(), 8);
}

}  // namespace
}  // namespace muster
