#include "common/core/system/clock.h"

#include <thread>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(ClockTest, RealTimeDoesNotGoBack) {
  const absl::Time before = Clock::Real()->Now();
  EXPECT_LE(before, Clock::Real()->Now());
}

TEST(ClockTest, ExpiredWaitReportsTheCondition) {
  absl::Mutex mutex;
  bool ready = false;
  absl::MutexLock lock(&mutex);
  EXPECT_FALSE(Clock::Real()->AwaitWithDeadline(
      &mutex, absl::Condition(&ready),
      Clock::Real()->Now() + absl::Milliseconds(1)));
  ready = true;
  EXPECT_TRUE(Clock::Real()->AwaitWithDeadline(&mutex, absl::Condition(&ready),
                                               absl::InfinitePast()));
}

TEST(SimulatedClockTest, WaitEndsWhenTimeIsAdvancedPastTheDeadline) {
  SimulatedClock clock;
  const absl::Time deadline = clock.Now() + absl::Hours(1);
  absl::Mutex mutex;
  bool ready = false;
  std::thread advance([&] { clock.Advance(absl::Hours(2)); });
  {
    absl::MutexLock lock(&mutex);
    EXPECT_FALSE(
        clock.AwaitWithDeadline(&mutex, absl::Condition(&ready), deadline));
  }
  advance.join();
}

}  // namespace
}  // namespace muster
