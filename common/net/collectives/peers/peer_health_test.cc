#include "common/net/collectives/peers/peer_health.h"

#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PeerHealthTest : public testing::Test {
 protected:
  void Meet() {
    health_.OnWelcomed(clock_.Now());
    health_.OnAccepted(clock_.Now());
  }
  // One interval passes; the peer answers or not.
  void Tick(bool is_heard) {
    clock_.Advance(kInterval);
    if (is_heard) health_.OnReceived(clock_.Now());
    health_.OnTick();
  }

  static constexpr absl::Duration kInterval = absl::Milliseconds(100);
  SimulatedClock clock_;
  PeerHealth health_{
      {.heartbeat_interval = kInterval, .heartbeat_timeout = absl::Seconds(1)}};
};

TEST_F(PeerHealthTest, APeerIsPresentWhenBothWaysAreOpen) {
  EXPECT_FALSE(health_.IsPresent());
  health_.OnWelcomed(clock_.Now());
  EXPECT_FALSE(health_.IsPresent());
  EXPECT_TRUE(health_.IsAlive());
  EXPECT_THAT(health_.MissingReason(), HasSubstr("has not reached this task"));
  health_.OnAccepted(clock_.Now());
  EXPECT_TRUE(health_.IsPresent());
  EXPECT_EQ(health_.MissingReason(), "");
}

TEST_F(PeerHealthTest, APeerNeverMetIsMissingAndNotLost) {
  for (int i = 0; i < 100; ++i) {
    health_.OnOutgoingEnded("connection refused");
    Tick(false);
  }
  EXPECT_EQ(health_.MissingReason(), "connection refused");
  EXPECT_EQ(health_.LossReason(), "");
}

TEST_F(PeerHealthTest, APeerThatAnswersIsNeverLost) {
  Meet();
  for (int i = 0; i < 1000; ++i) Tick(true);
  EXPECT_EQ(health_.LossReason(), "");
  EXPECT_EQ(clock_.Now() - health_.last_heard(), absl::ZeroDuration());
}

TEST_F(PeerHealthTest, ASilentPeerIsLostAfterTheTimeoutAndNotBefore) {
  Meet();
  for (int i = 0; i < 10; ++i) {
    Tick(false);
    EXPECT_EQ(health_.LossReason(), "") << i;
  }
  Tick(false);
  EXPECT_EQ(health_.LossReason(), "no sign of life for 1s");
  EXPECT_EQ(clock_.Now() - health_.last_heard(), 11 * kInterval);
}

TEST_F(PeerHealthTest, APeerIsSilentAfterMoreThanTwoIntervals) {
  Meet();
  Tick(false);
  Tick(false);
  EXPECT_FALSE(health_.IsSilent());
  Tick(false);
  EXPECT_TRUE(health_.IsSilent());
  health_.OnReceived(clock_.Now());
  EXPECT_FALSE(health_.IsSilent());
}

TEST_F(PeerHealthTest, AStoppedWatcherDeclaresNoPeerLost) {
  Meet();
  clock_.Advance(absl::Hours(1));
  Tick(false);
  EXPECT_EQ(health_.LossReason(), "");
}

TEST_F(PeerHealthTest, AKilledPeerIsLostWhenConnectionsAreRefused) {
  Meet();
  health_.OnIncomingEnded();
  health_.OnOutgoingEnded("reset");
  EXPECT_EQ(health_.LossReason(), "");
  health_.OnOutgoingEnded("connection refused");
  EXPECT_THAT(health_.LossReason(),
              AllOf(HasSubstr("reset"), HasSubstr("connection refused")));
}

TEST_F(PeerHealthTest, AConnectionThatIsMadeAgainIsNoLoss) {
  Meet();
  health_.OnOutgoingEnded("reset");
  health_.OnIncomingEnded();
  Tick(false);
  Meet();
  health_.OnOutgoingEnded("reset");
  EXPECT_EQ(health_.LossReason(), "");
}

TEST_F(PeerHealthTest, APeerThatNoLongerSendsIsLost) {
  Meet();
  health_.OnIncomingEnded();
  for (int i = 0; i < 10; ++i) Tick(true);
  EXPECT_EQ(health_.LossReason(), "");
  Tick(true);
  EXPECT_THAT(health_.LossReason(), HasSubstr("no longer reaches this task"));
}

}  // namespace
}  // namespace muster
