#include "common/net/process/shutdown_signals.h"

#include <unistd.h>

#include "absl/synchronization/notification.h"
#include "common/core/system/testing/await_true.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// Signals affect the whole process, so each test runs in a separate process.
class ShutdownSignalsTest : public testing::Test {
 protected:
  ShutdownSignalsTest() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    // Ends a process that waits for a signal that does not arrive.
    alarm(absl::ToInt64Seconds(kTestWaitMax));
  }
  ~ShutdownSignalsTest() override { alarm(0); }
};

TEST_F(ShutdownSignalsTest, ASignalCallsTheHandlerOnce) {
  EXPECT_EXIT(
      {
        ShutdownSignals signals;
        absl::Notification called;
        signals.SetHandler([&](int signal) {
          if (signal == SIGTERM) called.Notify();
        });
        kill(getpid(), SIGTERM);
        EXPECT_TRUE(called.WaitForNotificationWithTimeout(kTestWaitMax));
        signals.AwaitSignal(absl::InfiniteFuture());
        _exit(signals.exit_code());
      },
      testing::ExitedWithCode(143), "");
}

TEST_F(ShutdownSignalsTest, AHandlerSetLateIsCalledAtOnce) {
  EXPECT_EXIT(
      {
        ShutdownSignals signals;
        kill(getpid(), SIGINT);
        signals.AwaitSignal(absl::InfiniteFuture());
        signals.SetHandler([](int signal) { _exit(signal); });
      },
      testing::ExitedWithCode(SIGINT), "");
}

TEST_F(ShutdownSignalsTest, ASecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        ShutdownSignals signals;
        kill(getpid(), SIGINT);
        signals.AwaitSignal(absl::InfiniteFuture());
        kill(getpid(), SIGTERM);
        pause();
      },
      testing::ExitedWithCode(143), "second signal");
}

TEST_F(ShutdownSignalsTest, TheSameSignalTwiceAtOnceCountsOnce) {
  EXPECT_EXIT(
      {
        ShutdownSignals signals({.grace_period = absl::Milliseconds(500)});
        kill(getpid(), SIGTERM);
        signals.AwaitSignal(absl::InfiniteFuture());
        kill(getpid(), SIGTERM);
        pause();
      },
      testing::ExitedWithCode(143), "grace period of 500ms");
}

TEST_F(ShutdownSignalsTest, AStuckShutdownEndsWithItsGracePeriod) {
  EXPECT_EXIT(
      {
        ShutdownSignals signals({.grace_period = absl::Milliseconds(50)});
        kill(getpid(), SIGTERM);
        pause();
      },
      testing::ExitedWithCode(143), "grace period of 50ms");
}

TEST_F(ShutdownSignalsTest, AfterwardsSignalsKillAsBefore) {
  EXPECT_EXIT(
      {
        { ShutdownSignals signals; }
        kill(getpid(), SIGTERM);
        _exit(0);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace muster
