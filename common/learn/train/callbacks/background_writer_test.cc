#include "common/learn/train/callbacks/background_writer.h"

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/log_format.h"
#include "common/core/system/testing/await_true.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(BackgroundWriterTest, OneIsWrittenAtATime) {
  BackgroundWriter writer;
  absl::Notification may_end;
  EXPECT_TRUE(writer.Start("first", [&] {
    EXPECT_TRUE(may_end.WaitForNotificationWithTimeout(kTestWaitMax));
    return absl::OkStatus();
  }));
  bool was_called = false;
  EXPECT_FALSE(writer.Start("second", [&] {
    was_called = true;
    return absl::OkStatus();
  }));
  may_end.Notify();
  EXPECT_OK(writer.Await());
  EXPECT_FALSE(was_called);
  EXPECT_TRUE(writer.Start("third", [] { return absl::OkStatus(); }));
  EXPECT_OK(writer.Await());
  EXPECT_EQ(writer.failure_count(), 0);
}

TEST(BackgroundWriterTest, FailuresAreCountedAndTheLastOneIsTold) {
  BackgroundWriter writer;
  EXPECT_TRUE(writer.Start("first", [] {
    return absl::ResourceExhaustedError("the disk is full");
  }));
  EXPECT_THAT(writer.Await(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(
      writer.Run("second", [] { return absl::DataLossError("broken"); }),
      StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(writer.failure_count(), 2);
  EXPECT_OK(writer.Run("third", [] { return absl::OkStatus(); }));
  EXPECT_OK(writer.Await());
}

TEST(BackgroundWriterTest, RepeatedFailuresAreLoggedOnceAndThenCounted) {
  const int64_t before = ReadRecentProblems().warning_count;
  BackgroundWriter writer;
  const auto fail = [](absl::StatusCode code) {
    return [code] { return absl::Status(code, "the disk is full"); };
  };
  for (int i = 0; i < 76; ++i) {
    EXPECT_FALSE(
        writer.Run("backup", fail(absl::StatusCode::kResourceExhausted)).ok());
  }
  EXPECT_EQ(ReadRecentProblems().warning_count, before + 2);
  EXPECT_THAT(ReadRecentProblems().records.back().message,
              HasSubstr("backup could not be written (10 times so far)"));
  // Another reason is another fact, and so is a failure after a success.
  EXPECT_FALSE(writer.Run("backup", fail(absl::StatusCode::kUnknown)).ok());
  EXPECT_OK(writer.Run("backup", fail(absl::StatusCode::kOk)));
  EXPECT_FALSE(writer.Run("backup", fail(absl::StatusCode::kUnknown)).ok());
  EXPECT_EQ(ReadRecentProblems().warning_count, before + 4);
  EXPECT_EQ(writer.failure_count(), 78);
}

TEST(BackgroundWriterTest, RepeatedSkipsAreLoggedOnceAndThenCounted) {
  const int64_t before = ReadRecentProblems().warning_count;
  absl::Notification may_end;
  {
    BackgroundWriter writer;
    EXPECT_TRUE(writer.Start("first", [&] {
      may_end.WaitForNotificationWithTimeout(absl::Minutes(1));
      return absl::OkStatus();
    }));
    for (int i = 0; i < 76; ++i) {
      EXPECT_FALSE(writer.Start("next", [] { return absl::OkStatus(); }));
    }
    EXPECT_EQ(ReadRecentProblems().warning_count, before + 2);
    may_end.Notify();
  }
  EXPECT_THAT(ReadRecentProblems().records.back().message,
              HasSubstr("76 saves were skipped"));
  EXPECT_EQ(ReadRecentProblems().warning_count, before + 3);
}

TEST(BackgroundWriterTest, AWaitForASlowDiskIsLogged) {
  SimulatedClock clock;
  BackgroundWriter writer(
      {.timeout = absl::InfiniteDuration(), .clock = &clock});
  const int64_t before = ReadRecentProblems().warning_count;
  EXPECT_OK(writer.Run("checkpoint backup/ckpt-3", [&] {
    while (ReadRecentProblems().warning_count == before) {
      clock.Advance(absl::Seconds(1));
    }
    return absl::OkStatus();
  }));
  EXPECT_THAT(ReadRecentProblems().records.back().message,
              HasSubstr("checkpoint backup/ckpt-3 is still being written"));
}

TEST(BackgroundWriterTest, WaitingEndsAndNamesWhatIsBeingWritten) {
  SimulatedClock clock;
  BackgroundWriter writer({.timeout = absl::ZeroDuration(), .clock = &clock});
  absl::Notification may_end;
  EXPECT_TRUE(writer.Start("checkpoint backup/ckpt-3", [&] {
    EXPECT_TRUE(may_end.WaitForNotificationWithTimeout(kTestWaitMax));
    return absl::OkStatus();
  }));
  EXPECT_THAT(writer.Await(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                       HasSubstr("backup/ckpt-3")));
  may_end.Notify();
}

}  // namespace
}  // namespace muster
