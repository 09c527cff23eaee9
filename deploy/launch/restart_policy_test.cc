#include "deploy/launch/restart_policy.h"

#include <signal.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

const ProcessEnd& kCrash = *new ProcessEnd{.exit_code = 1};
const ProcessEnd& kKilled = *new ProcessEnd{.signal = SIGKILL};
constexpr absl::Duration kShort = absl::Milliseconds(10);
constexpr absl::Duration kLong = absl::Minutes(1);

TEST(RestartPolicyTest, NothingIsRestartedUnlessAsked) {
  RestartPolicy policy({.restart_count_max = 0});
  const RestartPolicy::Decision decision = policy.OnEnd(kCrash, kLong);
  EXPECT_FALSE(decision.restart);
  EXPECT_EQ(decision.reason, "");
}

TEST(RestartPolicyTest, AGoodEndIsTheEnd) {
  RestartPolicy policy({.restart_count_max = 9});
  EXPECT_FALSE(policy.OnEnd({}, kLong).restart);
}

TEST(RestartPolicyTest, AUsageErrorIsNotRestarted) {
  RestartPolicy policy({.restart_count_max = 9});
  const RestartPolicy::Decision decision =
      policy.OnEnd({.exit_code = 2}, kShort);
  EXPECT_FALSE(decision.restart);
  EXPECT_THAT(decision.reason, HasSubstr("status 2"));
}

TEST(RestartPolicyTest, AFailureIsKeptIfItIsThatOfTheJob) {
  RestartPolicy policy({.restart_count_max = 9, .keeps_failures = true});
  EXPECT_FALSE(policy.OnEnd(kCrash, kLong).restart);
  EXPECT_TRUE(policy.OnEnd(kKilled, kLong).restart);
  EXPECT_TRUE(policy.OnEnd({.exit_code = 138}, kLong).restart);
}

TEST(RestartPolicyTest, ALongRunIsFollowedAtOnce) {
  RestartPolicy policy({.restart_count_max = 1000});
  for (int i = 0; i < 1000; ++i) {
    const RestartPolicy::Decision decision = policy.OnEnd(kCrash, kLong);
    ASSERT_TRUE(decision.restart);
    ASSERT_EQ(decision.pause, absl::ZeroDuration());
  }
  EXPECT_FALSE(policy.OnEnd(kCrash, kLong).restart);
}

TEST(RestartPolicyTest, CrashesAtTheStartPauseLongerAndEndInALoop) {
  RestartPolicy policy({.restart_count_max = 100});
  EXPECT_EQ(policy.OnEnd(kCrash, kShort).pause, absl::ZeroDuration());
  EXPECT_EQ(policy.OnEnd(kCrash, kShort).pause, absl::Milliseconds(100));
  EXPECT_EQ(policy.OnEnd(kCrash, kShort).pause, absl::Milliseconds(200));
  EXPECT_EQ(policy.OnEnd(kCrash, kShort).pause, absl::Milliseconds(400));
  const RestartPolicy::Decision last = policy.OnEnd(kCrash, kShort);
  EXPECT_FALSE(last.restart);
  EXPECT_THAT(last.reason, HasSubstr("crash loop: it ended 5 times"));
}

TEST(RestartPolicyTest, ALongRunResetsTheCrashCount) {
  RestartPolicy policy({.restart_count_max = 100});
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(policy.OnEnd(kCrash, kShort).restart);
    EXPECT_TRUE(policy.OnEnd(kCrash, kLong).restart);
  }
}

TEST(RestartPolicyTest, BeingKilledIsNoCrashLoop) {
  RestartPolicy policy({.restart_count_max = 100});
  for (int i = 0; i < 50; ++i) {
    const RestartPolicy::Decision decision = policy.OnEnd(kKilled, kShort);
    ASSERT_TRUE(decision.restart);
    ASSERT_LE(decision.pause, absl::Seconds(10));
  }
}

TEST(RestartPolicyTest, TheLossOfAnotherTaskIsNoCrash) {
  const ProcessEnd survivor = {.exit_code = 138};
  RestartPolicy policy({.restart_count_max = 100});
  for (int i = 0; i < 50; ++i) {
    const RestartPolicy::Decision decision = policy.OnEnd(survivor, kShort);
    ASSERT_TRUE(decision.restart) << decision.reason;
    ASSERT_LE(decision.pause, absl::Seconds(10));
  }
  // Crashes of the task count, even with other ends between them.
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(policy.OnEnd(kCrash, kShort).restart);
    ASSERT_TRUE(policy.OnEnd(survivor, kShort).restart);
  }
  EXPECT_THAT(policy.OnEnd(kCrash, kShort).reason, HasSubstr("crash loop"));
}

}  // namespace
}  // namespace muster
