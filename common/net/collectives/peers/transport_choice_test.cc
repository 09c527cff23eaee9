#include "common/net/collectives/peers/transport_choice.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

proto::TransportOffer Offer(const std::string& host, bool shared_memory = true,
                            bool raw_sockets = true) {
  proto::TransportOffer offer;
  offer.set_host(host);
  offer.set_shared_memory(shared_memory);
  offer.set_raw_sockets(raw_sockets);
  return offer;
}

std::vector<std::string> Ways(const std::vector<proto::TransportOffer>& offers,
                              int replicas_per_task = 1) {
  std::vector<std::string> ways;
  for (const auto& plan : RankTransports(offers, replicas_per_task)) {
    ways.push_back(DescribeTransport(plan));
  }
  return ways;
}

constexpr char kTwoLevelRaw[] =
    "shared memory within hosts and raw sockets between them";
constexpr char kTwoLevelGrpc[] =
    "shared memory within hosts and gRPC between them";

TEST(TransportChoiceTest, OneHostSharesMemory) {
  EXPECT_THAT(Ways({Offer("a"), Offer("a")}),
              ElementsAre("shared memory", "raw sockets", "gRPC"));
}

TEST(TransportChoiceTest, OneTaskEachOnSeveralHostsSendsMessages) {
  EXPECT_THAT(Ways({Offer("a"), Offer("b")}),
              ElementsAre("raw sockets", "gRPC"));
}

TEST(TransportChoiceTest, SeveralRanksOnSeveralHostsUseTwoLevels) {
  const auto ways =
      ElementsAre(kTwoLevelRaw, kTwoLevelGrpc, "raw sockets", "gRPC");
  EXPECT_THAT(Ways({Offer("a"), Offer("b"), Offer("a")}), ways);
  EXPECT_THAT(Ways({Offer("a"), Offer("b")}, 2), ways);
}

TEST(TransportChoiceTest, WhatOneTaskHasSwitchedOffNobodyUses) {
  EXPECT_THAT(Ways({Offer("a"), Offer("a", false)}),
              ElementsAre("raw sockets", "gRPC"));
  EXPECT_THAT(Ways({Offer("a"), Offer("a", true, false)}),
              ElementsAre("shared memory", "gRPC"));
  EXPECT_THAT(Ways({Offer("a"), Offer("a"), Offer("b", true, false)}),
              ElementsAre(kTwoLevelGrpc, "gRPC"));
  EXPECT_THAT(Ways({Offer("a", false, false), Offer("a")}),
              ElementsAre("gRPC"));
}

TEST(TransportChoiceTest, MoreRanksThanFitShareNoMemory) {
  EXPECT_THAT(Ways({Offer("a"), Offer("a")}, 33),
              ElementsAre("raw sockets", "gRPC"));
}

TEST(TransportChoiceTest, HostsAreInTheOrderOfTheirFirstRank) {
  const std::vector<std::string> hosts = {"b", "a", "b", "c", "a"};
  EXPECT_THAT(
      GroupByHost(hosts),
      ElementsAre(ElementsAre(0, 2), ElementsAre(1, 4), ElementsAre(3)));
}

TEST(TransportChoiceTest, ThisHostHasAName) {
  EXPECT_THAT(OwnHostName(), Not(IsEmpty()));
  EXPECT_EQ(OwnHostName(), OwnHostName());
}

}  // namespace
}  // namespace muster
