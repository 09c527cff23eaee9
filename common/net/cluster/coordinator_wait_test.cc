#include "common/net/cluster/coordinator_wait.h"

#include "common/core/base/testing/status_matchers.h"
#include "common/net/cluster/task_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr absl::Time kStart = absl::UnixEpoch();

absl::Time At(int seconds) { return kStart + absl::Seconds(seconds); }

CoordinatorWait MakeWait() {
  return CoordinatorWait({.coordinator = "the coordinator (chief h0:2222)",
                          .timeout = absl::Seconds(12)},
                         kStart);
}

TEST(CoordinatorWaitTest, DescribesTheCoordinatorIfTheClusterListsIt) {
  ASSERT_OK_AND_ASSIGN(
      const ClusterSpec listed,
      ClusterSpec::FromLists({{TaskType::kChief, {"h0:2222"}}}));
  EXPECT_EQ(DescribeCoordinator(listed), "the coordinator (chief h0:2222)");
  EXPECT_EQ(DescribeCoordinator(ClusterSpec()), "the coordinator");
}

TEST(CoordinatorWaitTest, ReportsAtIntervalsAndEndsAtTheDeadline) {
  CoordinatorWait wait = MakeWait();
  EXPECT_EQ(wait.next_look(), At(5));
  EXPECT_THAT(wait.Look(true, 0, At(4)), IsOkAndHolds(""));
  EXPECT_THAT(wait.Look(true, 0, At(5)),
              IsOkAndHolds("waiting for the coordinator (chief h0:2222), 5 s"));
  EXPECT_THAT(wait.Look(true, 0, At(6)), IsOkAndHolds(""));
  EXPECT_EQ(wait.next_look(), At(10));
  EXPECT_THAT(
      wait.Look(true, 0, At(10)),
      IsOkAndHolds("waiting for the coordinator (chief h0:2222), 10 s"));
  EXPECT_EQ(wait.next_look(), At(12));
  EXPECT_THAT(
      wait.Look(true, 0, At(12)),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               AllOf(HasSubstr("after 12s"), HasSubstr("none connected"),
                     HasSubstr("(chief h0:2222)"))));
}

TEST(CoordinatorWaitTest, IntervalsBetweenReportsGrow) {
  CoordinatorWait wait(
      {.coordinator = "the coordinator", .timeout = absl::Hours(1)}, kStart);
  for (const int seconds : {5, 10, 20, 40, 80, 140, 200, 260}) {
    EXPECT_EQ(wait.next_look(), At(seconds));
    EXPECT_THAT(wait.Look(true, 0, At(seconds)),
                IsOkAndHolds("waiting for the coordinator, " +
                             std::to_string(seconds) + " s"));
  }
}

TEST(CoordinatorWaitTest, DoesNotWaitWhileThereIsACoordinator) {
  CoordinatorWait wait = MakeWait();
  EXPECT_THAT(wait.Look(false, 0, At(1)), IsOkAndHolds(""));
  EXPECT_EQ(wait.next_look(), absl::InfiniteFuture());
  EXPECT_THAT(wait.Look(false, 0, At(100)), IsOkAndHolds(""));
}

TEST(CoordinatorWaitTest, TimeoutRestartsAfterEachLoss) {
  CoordinatorWait wait = MakeWait();
  // A coordinator that connected and was lost between two calls counts as well.
  EXPECT_THAT(wait.Look(true, 1, At(11)), IsOkAndHolds(""));
  EXPECT_THAT(
      wait.Look(true, 1, At(16)),
      IsOkAndHolds(
          "waiting for the coordinator (chief h0:2222) to reconnect, 5 s"));
  EXPECT_THAT(wait.Look(true, 1, At(23)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("did not reconnect")));
}

}  // namespace
}  // namespace muster
