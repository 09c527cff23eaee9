#include "common/net/collectives/nccl/agreement.h"

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/testing/await_true.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/message/frame.h"
#include "common/net/collectives/message/message_communicator.h"
#include "common/net/collectives/message/testing/memory_lane.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr int kSize = 2;
constexpr absl::Duration kTimeout = absl::Seconds(60);
constexpr CallSignature kBarrier = {.operation = CollectiveOperation::kBarrier};

class CallAgreementTest : public ::testing::Test {
 protected:
  CallAgreementTest() {
    auto lanes = MakeMemoryLanes(kSize);
    for (int rank = 0; rank < kSize; ++rank) {
      auto control =
          MakeMessageCommunicator({rank, 5, std::move(lanes[rank]), {}});
      EXPECT_OK(control);
      controls_.push_back(*std::move(control));
    }
    // The agreements are constructed one after another, so the ranks' times
    // differ by the duration of this loop.
    const absl::Time begin = Clock::Real()->Now();
    for (const auto& control : controls_) {
      agreements_.emplace_back(control.get());
    }
    skew_ = Clock::Real()->Now() - begin;
  }

  std::vector<std::unique_ptr<Communicator>> controls_;
  std::vector<CallAgreement> agreements_;
  absl::Duration skew_;
};

// The timeout must not start again after the agreement.
TEST_F(CallAgreementTest, TheTimeoutStartsWithTheFirstRankThatCalls) {
  const absl::Time start = Clock::Real()->Now();
  absl::StatusOr<absl::Time> first;
  std::thread early([&] {
    first = agreements_[0].Agree(kBarrier, {"gradients", kTimeout});
  });
  EXPECT_TRUE(AwaitTrue([&] {
    return controls_[0]->Progress().elapsed >= absl::Milliseconds(50);
  }));
  const absl::Time late_start = Clock::Real()->Now();
  const absl::StatusOr<absl::Time> second =
      agreements_[1].Agree(kBarrier, {"gradients", kTimeout});
  early.join();
  ASSERT_OK(first);
  ASSERT_OK(second);
  EXPECT_GE(*first, start + kTimeout);
  EXPECT_LE(*first, late_start - absl::Milliseconds(50) + kTimeout);
  EXPECT_LE(absl::AbsDuration(*second - *first), skew_);
}

TEST_F(CallAgreementTest, TheShortestTimeoutEndsTheCallForAllRanks) {
  for (int call = 0; call < 2; ++call) {
    absl::StatusOr<absl::Time> patient;
    const absl::Time start = Clock::Real()->Now();
    std::thread other([&] {
      patient = agreements_[0].Agree(kBarrier, {"gradients", 10 * kTimeout});
    });
    const absl::StatusOr<absl::Time> hasty =
        agreements_[1].Agree(kBarrier, {"gradients", kTimeout});
    other.join();
    ASSERT_OK(patient);
    ASSERT_OK(hasty);
    EXPECT_GE(*hasty, start + kTimeout);
    EXPECT_LT(*patient, start + 2 * kTimeout);
  }
}

TEST_F(CallAgreementTest, RanksInDifferentCallsAreNamed) {
  absl::StatusOr<absl::Time> other_result;
  std::thread other([&] {
    other_result = agreements_[1].Agree(
        {.operation = CollectiveOperation::kBroadcast}, {"weights", kTimeout});
  });
  EXPECT_THAT(agreements_[0].Agree(kBarrier, {"gradients", kTimeout}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("rank 1 is in broadcast")));
  other.join();
  EXPECT_FALSE(other_result.ok());
}

}  // namespace
}  // namespace muster
