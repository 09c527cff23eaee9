#include "common/learn/strategy/synchronous/collective_thread.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/testing/await_true.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

TEST(CollectiveThreadTest, WorksInTheOrderOfSubmission) {
  std::vector<int> done;
  CollectiveThread thread(
      [&](int item) {
        done.push_back(item);
        return absl::OkStatus();
      },
      3);
  for (int round = 0; round < 50; ++round) {
    done.clear();
    for (const int item : {2, 0, 1}) thread.Submit(item);
    ASSERT_OK(thread.Drain());
    EXPECT_THAT(done, ElementsAre(2, 0, 1));
  }
}

TEST(CollectiveThreadTest, AnErrorDropsTheRestAndStays) {
  absl::Notification may_fail;
  std::vector<int> done;
  CollectiveThread thread(
      [&](int item) -> absl::Status {
        EXPECT_TRUE(may_fail.WaitForNotificationWithTimeout(kTestWaitMax));
        done.push_back(item);
        return absl::UnavailableError("rank 1 is gone");
      },
      3);
  thread.Submit(0);
  thread.Submit(1);
  may_fail.Notify();
  EXPECT_THAT(thread.Drain(),
              StatusIs(absl::StatusCode::kUnavailable, "rank 1 is gone"));
  thread.Submit(2);
  EXPECT_THAT(thread.Drain(),
              StatusIs(absl::StatusCode::kUnavailable, "rank 1 is gone"));
  EXPECT_THAT(done, ElementsAre(0));
}

TEST(CollectiveThreadTest, EndsWithWorkLeft) {
  absl::Notification started;
  CollectiveThread thread(
      [&](int) {
        if (!started.HasBeenNotified()) started.Notify();
        return absl::OkStatus();
      },
      8);
  for (int item = 0; item < 8; ++item) thread.Submit(item);
  EXPECT_TRUE(started.WaitForNotificationWithTimeout(kTestWaitMax));
}

}  // namespace
}  // namespace muster
