#include "common/net/collectives/message/transfer_plan.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int> NeededReceives(const TransferPlan::Step& step) {
  std::vector<int> receives;
  for (const TransferPlan::Need& need : step.needs) {
    receives.push_back(need.receive);
  }
  return receives;
}

TEST(PlanTest, ARingForwardsThePartOfThePreviousHop) {
  const TransferPlan plan = MakeTransferPlan(
      AllReduceSchedule(Algorithm::kRing, 1, 4, 16), /*size=*/4, 4);
  ASSERT_EQ(plan.sends.size(), 6u);
  EXPECT_THAT(NeededReceives(plan.sends[0]), IsEmpty());
  for (int hop = 1; hop < 6; ++hop) {
    EXPECT_THAT(NeededReceives(plan.sends[hop]), ElementsAre(hop - 1));
    EXPECT_EQ(plan.sends[hop].step, static_cast<uint32_t>(hop));
  }
  EXPECT_THAT(plan.sends_to[2], ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(plan.receives_from[0], ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(plan.sends_to[3], IsEmpty());
}

TEST(PlanTest, DirectSumsAreMadeInOneOrder) {
  const TransferPlan plan = MakeTransferPlan(
      AllReduceSchedule(Algorithm::kDirect, 0, 4, 16), /*size=*/4, 4);
  // Three receives are added to this rank's part, one after another.
  EXPECT_THAT(NeededReceives(plan.receives[0]), IsEmpty());
  EXPECT_THAT(NeededReceives(plan.receives[1]), ElementsAre(0));
  EXPECT_THAT(NeededReceives(plan.receives[2]), ElementsAre(1));
  // The sum is sent after the last of them.
  for (int send = 3; send < 6; ++send) {
    EXPECT_THAT(NeededReceives(plan.sends[send]), ElementsAre(2));
  }
}

TEST(PlanTest, HalvingDoublingSendsCombinedParts) {
  const TransferPlan plan = MakeTransferPlan(
      AllReduceSchedule(Algorithm::kHalvingDoubling, 0, 4, 16), 4, 16);
  // The receives are a half, a quarter (which completes the sum), a quarter and
  // a half.
  ASSERT_EQ(plan.sends.size(), 4u);
  EXPECT_THAT(NeededReceives(plan.sends[1]), ElementsAre(0));
  EXPECT_THAT(NeededReceives(plan.sends[2]), ElementsAre(1));
  EXPECT_THAT(NeededReceives(plan.sends[3]), ElementsAre(2, 1));
}

TEST(PlanTest, ABarrierStepWaitsForAllEarlierSteps) {
  const TransferPlan plan = MakeTransferPlan(BarrierSchedule(0, 8), 8, 1);
  EXPECT_THAT(NeededReceives(plan.sends[0]), IsEmpty());
  EXPECT_THAT(NeededReceives(plan.sends[2]), ElementsAre(0, 1));
}

TEST(PlanTest, ASegmentDependsOnlyOnTheSameSegment) {
  const TransferPlan::Need need{0, {8, 16}};
  EXPECT_EQ(NeededEnd(need, 12), 12);
  EXPECT_EQ(NeededEnd(need, 20), 16);
}

}  // namespace
}  // namespace muster
