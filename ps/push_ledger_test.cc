#include "ps/push_ledger.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "common/core/base/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(PushLedgerTest, AppliesAPushOnce) {
  PushLedger ledger;
  EXPECT_THAT(ledger.Claim({5, 0}), IsOkAndHolds(true));
  ledger.Finish({5, 0});
  EXPECT_THAT(ledger.Claim({5, 0}), IsOkAndHolds(false));
}

TEST(PushLedgerTest, DistinguishesExchangesOfOneStep) {
  PushLedger ledger;
  EXPECT_THAT(ledger.Claim({5, 0}), IsOkAndHolds(true));
  EXPECT_THAT(ledger.Claim({5, 1}), IsOkAndHolds(true));
}

TEST(PushLedgerTest, StepZeroIsAlwaysApplied) {
  PushLedger ledger;
  EXPECT_THAT(ledger.Claim({0, 0}), IsOkAndHolds(true));
  EXPECT_THAT(ledger.Claim({0, 0}), IsOkAndHolds(true));
  EXPECT_EQ(ledger.remembered_count(), 0);
}

TEST(PushLedgerTest, LowWaterMarkForgetsAndRejectsLatePushes) {
  PushLedger ledger;
  for (uint64_t step = 1; step <= 10; ++step) {
    EXPECT_THAT(ledger.Claim({step, 0}), IsOkAndHolds(true));
    ledger.Finish({step, 0});
  }
  ledger.AdvanceLowWaterMark(8);
  EXPECT_EQ(ledger.remembered_count(), 3);
  // The record of step 3 is deleted, but its push is still not applied again.
  EXPECT_THAT(ledger.Claim({3, 0}), IsOkAndHolds(false));
  EXPECT_THAT(ledger.Claim({9, 0}), IsOkAndHolds(false));
  ledger.AdvanceLowWaterMark(2);
  EXPECT_THAT(ledger.Claim({3, 1}), IsOkAndHolds(false));
}

// A coordinator that takes over a running server does not know which ids its
// predecessor has used. An id that was used is acknowledged and not applied,
// whether the ledger still remembers it or not, so the push would be lost.
TEST(PushLedgerTest, OnlyIdsAboveAllThatWereUsedAreApplied) {
  PushLedger ledger;
  for (uint64_t step = 1; step <= 100; ++step) {
    EXPECT_THAT(ledger.Claim({step, 0}), IsOkAndHolds(true));
    ledger.Finish({step, 0});
  }
  ledger.AdvanceLowWaterMark(90);
  for (uint64_t step = 1; step <= 100; ++step) {
    EXPECT_THAT(ledger.Claim({step, 0}), IsOkAndHolds(false)) << step;
  }
  const uint64_t reserved = 1 + 65536;
  // The mark of the predecessor does not fall, and the ids between are free.
  ledger.AdvanceLowWaterMark(reserved);
  for (uint64_t step = reserved; step < reserved + 100; ++step) {
    EXPECT_THAT(ledger.Claim({step, 0}), IsOkAndHolds(true)) << step;
  }
}

TEST(PushLedgerTest, MemoryIsBounded) {
  PushLedger ledger(2);
  EXPECT_OK(ledger.Claim({1, 0}));
  EXPECT_OK(ledger.Claim({2, 0}));
  EXPECT_THAT(ledger.Claim({3, 0}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("low-water mark is 0")));
  ledger.AdvanceLowWaterMark(2);
  EXPECT_OK(ledger.Claim({3, 0}));
}

TEST(PushLedgerTest, RepeatBlocksUntilTheFirstIsApplied) {
  PushLedger ledger;
  ASSERT_THAT(ledger.Claim({1, 0}), IsOkAndHolds(true));
  std::atomic<bool> applied = false;
  std::thread repeat([&] {
    EXPECT_THAT(ledger.Claim({1, 0}), IsOkAndHolds(false));
    EXPECT_TRUE(applied);
  });
  applied = true;
  ledger.Finish({1, 0});
  repeat.join();
}

TEST(PushLedgerTest, APushThatWasGivenUpCanBeClaimedByAWaiter) {
  PushLedger ledger;
  const PushId push{.step_id = 7, .exchange_index = 1};
  EXPECT_THAT(ledger.Claim(push), IsOkAndHolds(true));
  std::thread waiter([&] {
    EXPECT_THAT(ledger.Claim(push), IsOkAndHolds(true));
    ledger.Finish(push);
  });
  ledger.GiveUp(push);
  waiter.join();
  EXPECT_THAT(ledger.Claim(push), IsOkAndHolds(false));
  EXPECT_EQ(ledger.remembered_count(), 1u);
}

TEST(PushLedgerTest, RestoresWhatAnotherProcessHasApplied) {
  PushLedger ledger;
  ledger.AdvanceLowWaterMark(5);
  ledger.Restore({.step_id = 4, .exchange_index = 0});
  ledger.Restore({.step_id = 6, .exchange_index = 2});
  EXPECT_EQ(ledger.remembered_count(), 1u);
  EXPECT_THAT(ledger.Claim({.step_id = 6, .exchange_index = 2}),
              IsOkAndHolds(false));
  uint64_t low_water_mark = 0;
  const std::vector<PushId> pushes = ledger.List(&low_water_mark);
  EXPECT_EQ(low_water_mark, 5u);
  ASSERT_EQ(pushes.size(), 1u);
  EXPECT_EQ(pushes[0].step_id, 6u);
  EXPECT_EQ(pushes[0].exchange_index, 2u);
}

}  // namespace
}  // namespace muster
