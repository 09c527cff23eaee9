#include "common/net/collectives/message/blame.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

constexpr PeerState kSelf = {.is_other = false};
constexpr PeerState kAbsent = {.is_awaited = true};
constexpr PeerState kAwaited = {.has_arrived = true, .is_awaited = true};
constexpr PeerState kWaiting = {
    .has_arrived = true, .is_awaited = true, .is_waiting = true};
constexpr PeerState kDone = {.has_arrived = true};

Blame Find(std::vector<PeerState> peers, bool is_broadcast = false) {
  return FindBlame(peers, is_broadcast);
}

TEST(BlameTest, ARankThatHasNotArrivedIsNamed) {
  const Blame blame = Find({kSelf, kAwaited, kAbsent});
  EXPECT_FALSE(blame.have_all_arrived);
  EXPECT_THAT(blame.ranks, ElementsAre(2));
  EXPECT_TRUE(blame.is_certain);
}

TEST(BlameTest, ARankThatWaitsItselfIsNotNamedBesideOneThatDoesNot) {
  const Blame blame = Find({kDone, kWaiting, kAwaited, kSelf});
  EXPECT_TRUE(blame.have_all_arrived);
  EXPECT_THAT(blame.ranks, ElementsAre(2));
  EXPECT_TRUE(blame.is_certain);
}

TEST(BlameTest, SeveralSilentRanksAreNamedWithoutCertainty) {
  const Blame blame = Find({kAwaited, kSelf, kAwaited, kWaiting});
  EXPECT_THAT(blame.ranks, ElementsAre(0, 2));
  EXPECT_FALSE(blame.is_certain);
}

TEST(BlameTest, IfAllRanksWaitAllAreNamed) {
  const Blame blame = Find({kWaiting, kSelf, kWaiting});
  EXPECT_THAT(blame.ranks, ElementsAre(0, 2));
  EXPECT_FALSE(blame.is_certain);
}

TEST(BlameTest, ABroadcastNamesAbsentRanksThatMustSend) {
  const PeerState gone_root = {};
  EXPECT_THAT(Find({gone_root, kSelf, kAbsent}, true).ranks, ElementsAre(2));
  EXPECT_THAT(Find({gone_root, kSelf, kDone}, true).ranks, ElementsAre(0));
  EXPECT_THAT(Find({gone_root, kSelf, kAbsent}, false).ranks,
              ElementsAre(0, 2));
}

}  // namespace
}  // namespace muster
