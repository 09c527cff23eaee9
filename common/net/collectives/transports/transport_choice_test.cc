#include "common/net/collectives/transports/transport_choice.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/core/base/status_matchers.h"
#include "common/net/collectives/transports/transports.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr auto kAuto = CommunicationImplementation::kAuto;
constexpr auto kRing = CommunicationImplementation::kRing;

proto::TransportOffer Offer(const std::string& host, bool shared_memory = true,
                            bool raw_sockets = true) {
  return OfferTransports({.host = host,
                          .shared_memory = shared_memory,
                          .raw_sockets = raw_sockets});
}

// What is chosen when one after the other fails.
std::vector<std::string> Ways(const std::vector<proto::TransportOffer>& offers,
                              int replicas_per_task = 1) {
  std::vector<std::string> ways;
  std::map<std::string, std::string> failures;
  while (true) {
    const TransportChoice choice =
        ChooseTransport(kRing, offers, replicas_per_task, failures);
    if (choice.transport == nullptr) return ways;
    ways.push_back(choice.transport->name());
    failures[ways.back()] = "it failed";
  }
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
  EXPECT_THAT(Ways({Offer("a"), Offer("a"), Offer("b", false)}),
              ElementsAre("raw sockets", "gRPC"));
  EXPECT_THAT(Ways({Offer("a", false, false), Offer("a")}),
              ElementsAre("gRPC"));
}

TEST(TransportChoiceTest, MoreRanksThanFitShareNoMemory) {
  EXPECT_THAT(Ways({Offer("a"), Offer("a")}, 33),
              ElementsAre("raw sockets", "gRPC"));
  EXPECT_THAT(Ways({Offer("a"), Offer("b")}, 65),
              ElementsAre("raw sockets", "gRPC"));
}

TEST(TransportChoiceTest, TheReasonNamesEveryBetterTransport) {
  const std::vector<proto::TransportOffer> hosts = {Offer("a"), Offer("b")};
  EXPECT_EQ(ChooseTransport(kRing, hosts, 1).reason,
            "RING chose raw sockets because every task allows them; "
            "shared memory was left out: the ranks are on 2 hosts; "
            "shared memory within hosts and raw sockets between them was left "
            "out: every host has one rank; "
            "shared memory within hosts and gRPC between them was left out: "
            "every host has one rank");
  EXPECT_THAT(
      ChooseTransport(kRing, {Offer("a"), Offer("a", false)}, 2).reason,
      HasSubstr("shared memory was left out: rank 2 has --noshared_memory"));
  EXPECT_THAT(
      ChooseTransport(kRing, hosts, 1, {{"raw sockets", "no port"}}).reason,
      AllOf(StartsWith("RING chose gRPC because every task serves it"),
            HasSubstr("; raw sockets was left out: no port")));
}

TEST(TransportChoiceTest, AutoSaysWhyNcclWasLeftOut) {
  const TransportChoice choice =
      ChooseTransport(kAuto, {Offer("a"), Offer("a")}, 1);
  EXPECT_EQ(choice.transport, &kSharedMemoryTransport);
  EXPECT_THAT(choice.reason,
              AllOf(StartsWith("AUTO chose shared memory because all ranks are "
                               "on one host; NCCL was left out: "),
                    HasSubstr("needs a GPU")));
}

TEST(TransportChoiceTest, AnImplementationWithoutTransportsIsRefused) {
  constexpr auto kNccl = CommunicationImplementation::kNccl;
  EXPECT_OK(CheckImplementation(kAuto));
  EXPECT_OK(CheckImplementation(kRing));
  EXPECT_THAT(CheckImplementation(kNccl),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("NCCL"), HasSubstr("needs a GPU"),
                             HasSubstr("use RING or AUTO"))));
  const TransportChoice choice =
      ChooseTransport(kNccl, {Offer("a"), Offer("a")}, 1);
  EXPECT_EQ(choice.transport, nullptr);
  EXPECT_EQ(choice.reason, "NCCL chose no transport");
}

TEST(TransportsTest, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const Transport* const transport : kTransports) {
    EXPECT_TRUE(names.insert(transport->name()).second) << transport->name();
    EXPECT_EQ(FindTransport(transport->name()), transport);
  }
  EXPECT_EQ(FindTransport("carrier pigeons"), nullptr);
}

TEST(TransportsTest, TheLastOneFitsTasksThatOfferNothing) {
  const std::vector<proto::TransportOffer> offers(2);
  const TransportChoice choice = ChooseTransport(kAuto, offers, 1);
  EXPECT_EQ(choice.transport, std::end(kTransports)[-1]);
}

TEST(TransportsTest, ThisHostHasAName) {
  EXPECT_THAT(OfferTransports({}).host(), Not(IsEmpty()));
  EXPECT_EQ(OfferTransports({}).host(), OfferTransports({}).host());
}

TEST(GroupPlanTest, HostsAreInTheOrderOfTheirFirstRank) {
  const std::vector<std::string> hosts = {"b", "a", "b", "c", "a"};
  EXPECT_THAT(
      GroupByHost(hosts),
      ElementsAre(ElementsAre(0, 2), ElementsAre(1, 4), ElementsAre(3)));
}

}  // namespace
}  // namespace muster
