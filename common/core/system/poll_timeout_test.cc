#include "common/core/system/poll_timeout.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(PollTimeoutTest, RoundsUpToWholeMilliseconds) {
  EXPECT_EQ(PollTimeoutMilliseconds(absl::Nanoseconds(1)), 1);
  EXPECT_EQ(PollTimeoutMilliseconds(absl::Milliseconds(5)), 5);
  EXPECT_EQ(PollTimeoutMilliseconds(absl::Microseconds(5001)), 6);
}

TEST(PollTimeoutTest, DoesNotWaitForAPastDeadline) {
  EXPECT_EQ(PollTimeoutMilliseconds(absl::ZeroDuration()), 0);
  EXPECT_EQ(PollTimeoutMilliseconds(-absl::Seconds(1)), 0);
  EXPECT_EQ(PollTimeoutMilliseconds(-absl::InfiniteDuration()), 0);
}

TEST(PollTimeoutTest, LongWaitsDoNotOverflow) {
  EXPECT_EQ(PollTimeoutMilliseconds(absl::Hours(24 * 365)), 1 << 30);
  EXPECT_EQ(PollTimeoutMilliseconds(absl::InfiniteDuration()), -1);
}

}  // namespace
}  // namespace muster
