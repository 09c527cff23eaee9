#include "common/net/rpc/seen_calls.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr uint64_t kWindow = SeenCalls::kWindow;

TEST(SeenCallsTest, EachCallIsNewOnce) {
  SeenCalls calls;
  for (uint64_t number = 1; number <= 3 * kWindow; ++number) {
    ASSERT_TRUE(calls.Add({.channel = 7, .number = number})) << number;
    ASSERT_FALSE(calls.Add({.channel = 7, .number = number})) << number;
  }
  for (uint64_t number = 1; number <= 3 * kWindow; ++number) {
    ASSERT_FALSE(calls.Add({.channel = 7, .number = number})) << number;
  }
}

TEST(SeenCallsTest, CallsMayOvertakeEachOtherWithinTheWindow) {
  SeenCalls calls;
  for (const uint64_t number : {kWindow, uint64_t{1}, kWindow / 2}) {
    EXPECT_TRUE(calls.Add({.channel = 7, .number = number})) << number;
    EXPECT_FALSE(calls.Add({.channel = 7, .number = number})) << number;
  }
  EXPECT_TRUE(calls.Add({.channel = 7, .number = kWindow + 2}));
  EXPECT_TRUE(calls.Add({.channel = 7, .number = kWindow + 1}));
  EXPECT_TRUE(calls.Add({.channel = 7, .number = 3}));
  EXPECT_FALSE(calls.Add({.channel = 7, .number = 2}));  // Too old.
}

TEST(SeenCallsTest, AGapLongerThanTheWindowForgetsNothingThatCounts) {
  SeenCalls calls;
  EXPECT_TRUE(calls.Add({.channel = 7, .number = 5}));
  EXPECT_TRUE(calls.Add({.channel = 7, .number = 5 + 4 * kWindow}));
  EXPECT_FALSE(calls.Add({.channel = 7, .number = 5}));
  EXPECT_FALSE(calls.Add({.channel = 7, .number = 5 + 4 * kWindow}));
  EXPECT_TRUE(calls.Add({.channel = 7, .number = 4 + 4 * kWindow}));
}

TEST(SeenCallsTest, ChannelsAreIndependent) {
  SeenCalls calls;
  EXPECT_TRUE(calls.Add({.channel = 7, .number = 1}));
  EXPECT_TRUE(calls.Add({.channel = 8, .number = 1}));
  EXPECT_FALSE(calls.Add({.channel = 7, .number = 1}));
}

TEST(SeenCallsTest, CallsWithoutANumberAreAlwaysNew) {
  SeenCalls calls;
  EXPECT_TRUE(calls.Add({}));
  EXPECT_TRUE(calls.Add({}));
}

TEST(SeenCallsTest, TheChannelThatWasSilentForLongestIsForgotten) {
  SeenCalls calls(/*channel_count_max=*/2);
  EXPECT_TRUE(calls.Add({.channel = 1, .number = 1}));
  EXPECT_TRUE(calls.Add({.channel = 2, .number = 1}));
  EXPECT_FALSE(calls.Add({.channel = 1, .number = 1}));
  EXPECT_TRUE(calls.Add({.channel = 3, .number = 1}));
  EXPECT_FALSE(calls.Add({.channel = 1, .number = 1}));
  EXPECT_FALSE(calls.Add({.channel = 3, .number = 1}));
  EXPECT_TRUE(calls.Add({.channel = 2, .number = 1}));
}

}  // namespace
}  // namespace muster
