#include "common/learn/strategy/synchronous/replica_threads.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/testing/await_true.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

void Ignore(const absl::Status&) {}

TEST(ReplicaThreadsTest, EveryReplicaWorksOnceOnAThreadOfItsOwn) {
  ReplicaThreads threads(4);
  EXPECT_EQ(threads.replica_count(), 4);
  std::vector<std::thread::id> first(4);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::thread::id> ids(4);
    std::vector<int> calls(4);
    EXPECT_OK(threads.Run(
        [&](int replica) {
          ids[replica] = std::this_thread::get_id();
          ++calls[replica];
          return absl::OkStatus();
        },
        Ignore));
    if (round == 0) first = ids;
    EXPECT_EQ(ids, first);
    EXPECT_EQ(calls, std::vector<int>(4, 1));
  }
  EXPECT_EQ(first[0], std::this_thread::get_id());
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < i; ++j) EXPECT_NE(first[i], first[j]);
  }
}

TEST(ReplicaThreadsTest, ReplicasWorkAtTheSameTime) {
  ReplicaThreads threads(3);
  std::atomic<int> arrived{0};
  absl::Notification all_are_there;
  EXPECT_OK(threads.Run(
      [&](int) {
        if (++arrived == 3) all_are_there.Notify();
        EXPECT_TRUE(all_are_there.WaitForNotificationWithTimeout(kTestWaitMax));
        return absl::OkStatus();
      },
      Ignore));
}

TEST(ReplicaThreadsTest, TheFirstErrorIsReportedAtOnceAndReturned) {
  ReplicaThreads threads(2);
  absl::Notification was_told;
  EXPECT_THAT(
      threads.Run(
          [&](int replica) -> absl::Status {
            if (replica == 1) return absl::DataLossError("broken");
            EXPECT_TRUE(was_told.WaitForNotificationWithTimeout(kTestWaitMax));
            return absl::AbortedError("because of another");
          },
          [&](const absl::Status& status) {
            EXPECT_THAT(status,
                        StatusIs(absl::StatusCode::kDataLoss, "broken"));
            was_told.Notify();
          }),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("broken")));
  EXPECT_OK(threads.Run([](int) { return absl::OkStatus(); }, Ignore));
}

TEST(ReplicaThreadsTest, OneReplicaNeedsNoThread) {
  ReplicaThreads threads(1);
  EXPECT_OK(threads.Run(
      [](int replica) {
        EXPECT_EQ(replica, 0);
        return absl::OkStatus();
      },
      Ignore));
}

}  // namespace
}  // namespace muster
