#include "common/net/collectives/transports/transport_choice.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/core/base/testing/status_matchers.h"
#include "common/net/collectives/nccl/fake/fake_gpus.h"
#include "common/net/collectives/nccl/nccl_api.h"
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

// Returns the transports that are chosen if each chosen one fails.
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

TEST(TransportChoiceTest, ATransportThatOneTaskHasDisabledIsNotUsed) {
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

class NcclChoiceTest : public testing::Test {
 protected:
  static constexpr auto kNccl = CommunicationImplementation::kNccl;

  // Returns the offer of a task whose replicas have these GPUs; -1 is a replica
  // on a CPU.
  proto::TransportOffer GpuOffer(const std::string& host,
                                 const std::vector<int>& gpus) {
    std::vector<Device*> devices;
    for (const int index : gpus) {
      devices.push_back(index < 0 ? nullptr : gpus_.device(index));
    }
    return OfferTransports(
        {.host = host, .devices = devices, .nccl = &gpus_.nccl().api()});
  }

  static std::string ReasonAgainstNccl(
      const std::vector<proto::TransportOffer>& offers,
      int replicas_per_task = 1) {
    const TransportChoice choice =
        ChooseTransport(kNccl, offers, replicas_per_task);
    EXPECT_EQ(choice.transport, nullptr);
    return choice.reason;
  }

  FakeGpus gpus_{4};
};

TEST_F(NcclChoiceTest, AutoTakesItWhereEachReplicaHasAGpu) {
  for (const TransportChoice& choice :
       {ChooseTransport(kAuto, {GpuOffer("a", {0}), GpuOffer("b", {0})}, 1),
        ChooseTransport(kAuto, {GpuOffer("a", {0, 1}), GpuOffer("a", {2, 3})},
                        2)}) {
    EXPECT_EQ(choice.transport, &kNcclTransport);
    EXPECT_EQ(choice.reason,
              "AUTO chose NCCL because every rank has a GPU of its own and "
              "NCCL 2.28.9");
  }
}

TEST_F(NcclChoiceTest, ARankOnACpuIsNamed) {
  EXPECT_EQ(ReasonAgainstNccl({GpuOffer("a", {0}), Offer("b")}),
            "NCCL chose no transport; NCCL was left out: it needs a GPU for "
            "every replica, and rank 1 computes on a CPU");
  EXPECT_THAT(ReasonAgainstNccl({GpuOffer("a", {0, -1})}, 2),
              HasSubstr("rank 1 computes on a CPU"));
}

TEST_F(NcclChoiceTest, ALibraryThatIsMissingIsNamedWithItsRank) {
  proto::TransportOffer without = GpuOffer("b", {1});
  without.clear_nccl_version();
  without.set_nccl_is_missing("no NCCL: install it");
  EXPECT_THAT(ReasonAgainstNccl({GpuOffer("a", {0}), without}),
              HasSubstr("rank 1: no NCCL: install it"));
}

TEST_F(NcclChoiceTest, SimulatedGpusHaveNoRealNccl) {
  nccl::Api real = gpus_.nccl().api();
  real.is_simulated = false;
  const proto::TransportOffer offer =
      OfferTransports({.devices = {gpus_.device(0)}, .nccl = &real});
  EXPECT_THAT(ReasonAgainstNccl({offer}),
              HasSubstr("rank 0: gpu:0 is a simulated GPU"));
}

TEST_F(NcclChoiceTest, VersionsThatDifferAreNamed) {
  proto::TransportOffer old = GpuOffer("b", {1});
  old.set_nccl_version(22703);
  EXPECT_THAT(ReasonAgainstNccl({GpuOffer("a", {0}), old}),
              HasSubstr("rank 0 has NCCL 2.28.9, and rank 1 has NCCL 2.27.3"));
}

TEST_F(NcclChoiceTest, RanksThatShareAGpuAreNamed) {
  EXPECT_THAT(
      ReasonAgainstNccl({GpuOffer("a", {0, 1}), GpuOffer("a", {2, 0})}, 2),
      HasSubstr("ranks 0 and 3 share GPU-"));
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
