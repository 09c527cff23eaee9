#include "common/core/base/backoff.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(BackoffTest, DelaysGrowToTheMaximumAndStay) {
  const BackoffOptions options = {.initial = absl::Milliseconds(10),
                                  .maximum = absl::Milliseconds(50),
                                  .multiplier = 2,
                                  .jitter = 0};
  EXPECT_EQ(BackoffDelay(options, 1, 0), absl::Milliseconds(10));
  EXPECT_EQ(BackoffDelay(options, 2, 0), absl::Milliseconds(20));
  EXPECT_EQ(BackoffDelay(options, 3, 0), absl::Milliseconds(40));
  EXPECT_EQ(BackoffDelay(options, 4, 0), absl::Milliseconds(50));
  EXPECT_EQ(BackoffDelay(options, 1000000, 0), absl::Milliseconds(50));
}

TEST(BackoffTest, JitterIsDrawnFromTheSeedAndBounded) {
  const BackoffOptions options = {.initial = absl::Milliseconds(100),
                                  .jitter = 0.5};
  bool any_differ = false;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const absl::Duration delay = BackoffDelay(options, 1, seed);
    EXPECT_EQ(delay, BackoffDelay(options, 1, seed));
    EXPECT_GE(delay, absl::Milliseconds(50));
    EXPECT_LE(delay, absl::Milliseconds(100));
    any_differ = any_differ || delay != BackoffDelay(options, 1, seed + 1);
  }
  EXPECT_TRUE(any_differ);
}

}  // namespace
}  // namespace muster
