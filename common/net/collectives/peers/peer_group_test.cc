#include "common/net/collectives/peers/peer_group.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/collectives/peers/testing/peer_cluster.h"
#include "common/net/rpc/fault_point.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(PeerGroupTest, TwoWorkersFormAGroupReduceAndPart) {
  const Groups groups = FormCluster(2);
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[1]->task_rank(), 1);
  EXPECT_EQ(groups[1]->task_count(), 2);
  EXPECT_EQ(groups[0]->generation(), groups[1]->generation());
  EXPECT_EQ(groups[0]->communicator(0)->generation(), groups[0]->generation());
  EXPECT_EQ(groups[1]->Describe(),
            "2 workers, 2 replicas; RING over shared memory");
  // Only the first task reports the line, which is the same for all.
  EXPECT_THAT(lines_[0].text(), HasSubstr(groups[0]->Describe()));
  EXPECT_EQ(lines_[1].text(), "");
  ExpectSums(groups);
  LeaveAll(groups);
  EXPECT_OK(groups[0]->cause());
}

TEST_F(PeerGroupTest, AWorkerAloneIsAGroup) {
  const Groups groups = FormCluster(1);
  ASSERT_EQ(groups.size(), 1);
  EXPECT_EQ(groups[0]->Describe(),
            "1 worker, 1 replica; RING over shared memory");
  ExpectSums(groups);
  LeaveAll(groups);
}

TEST_F(PeerGroupTest, TheChiefIsRankZero) {
  MakeCluster(1, /*has_chief=*/true);
  const Groups groups = JoinAll(AllOptions());
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0]->task_rank(), 0);
  EXPECT_EQ(groups[0]->Describe(),
            "chief and 1 worker, 2 replicas; RING over shared memory");
  ExpectSums(groups);
  LeaveAll(groups);
}

TEST_F(PeerGroupTest, EveryReplicaHasARankOfItsOwn) {
  MakeCluster(2);
  std::vector<PeerGroup::Options> all = AllOptions();
  for (auto& options : all) options.replicas_per_task = 2;
  const Groups groups = JoinAll(all);
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0]->replica_count(), 4);
  ExpectSums(groups, 2);
  LeaveAll(groups);
}

struct TransportCase {
  std::string name;
  int worker_count;
  int replicas_per_task;
  bool shared_memory;
  bool raw_sockets;
  std::vector<std::string> hosts;  // By worker; empty: this machine.
  std::string description;
};

class TransportTest : public PeerGroupTest,
                      public testing::WithParamInterface<TransportCase> {};

TEST_P(TransportTest, IsChosenAndReduces) {
  const TransportCase& param = GetParam();
  MakeCluster(param.worker_count);
  std::vector<PeerGroup::Options> all = AllOptions();
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].replicas_per_task = param.replicas_per_task;
    if (!param.hosts.empty()) all[i].transports.host = param.hosts[i];
  }
  // A restriction of one task applies to the whole group.
  all.back().transports.shared_memory = param.shared_memory;
  all.back().transports.raw_sockets = param.raw_sockets;
  const Groups groups = JoinAll(all);
  ASSERT_EQ(groups.size(), all.size());
  EXPECT_THAT(groups[0]->Describe(), HasSubstr(param.description));
  EXPECT_EQ(groups[0]->Describe(), groups.back()->Describe());
  ExpectSums(groups, param.replicas_per_task);
  LeaveAll(groups);
}

INSTANTIATE_TEST_SUITE_P(
    All, TransportTest,
    testing::Values(
        TransportCase{
            "RawSockets", 3, 1, false, true, {}, "RING over raw sockets"},
        TransportCase{"Grpc", 3, 1, false, false, {}, "RING over gRPC"},
        TransportCase{
            "GrpcOfSeveralReplicas", 2, 2, false, false, {}, "RING over gRPC"},
        TransportCase{"RawSocketsOfSeveralReplicas",
                      2,
                      2,
                      false,
                      true,
                      {},
                      "RING over raw sockets"},
        TransportCase{"HostsOfOneRank",
                      2,
                      1,
                      true,
                      true,
                      {"a", "b"},
                      "RING over raw sockets"},
        TransportCase{"TwoLevels",
                      2,
                      2,
                      true,
                      true,
                      {"a", "b"},
                      "RING over shared memory within hosts and raw sockets "
                      "between them"},
        TransportCase{"TwoLevelsOfUnevenHosts",
                      3,
                      1,
                      true,
                      false,
                      {"a", "b", "a"},
                      "RING over shared memory within hosts and gRPC between "
                      "them"}),
    [](const auto& info) { return info.param.name; });

TEST_F(PeerGroupTest, EncryptedRawSocketsServeEveryReplica) {
  MakeCluster(2);
  std::vector<PeerGroup::Options> all = AllOptions();
  for (auto& options : all) {
    options.replicas_per_task = 2;
    options.transports.shared_memory = false;
    options.transports.encrypts_raw_sockets = true;
  }
  all[1].transports.host = "b";
  const Groups groups = JoinAll(all);
  ASSERT_EQ(groups.size(), 2);
  EXPECT_THAT(groups[0]->Describe(), HasSubstr("RING over raw sockets"));
  ExpectSums(groups, 2);
  LeaveAll(groups);
}

TEST_F(PeerGroupTest, ATaskThatEncryptsConnectsToNoPlaintextSocket) {
  MakeCluster(2);
  std::vector<PeerGroup::Options> all = AllOptions();
  for (auto& options : all) {
    options.transports.shared_memory = false;
    options.connect_timeout = absl::Seconds(2);
  }
  all[1].transports.host = "b";
  all[1].transports.encrypts_raw_sockets = true;
  const Groups groups = JoinAll(all);
  ASSERT_EQ(groups.size(), 2);
  EXPECT_THAT(groups[0]->Describe(), HasSubstr("RING over gRPC"));
  LeaveAll(groups);
}

TEST_F(PeerGroupTest, ATransportThatCannotBeUsedGivesWayToTheNext) {
  MakeCluster(2);
  std::vector<PeerGroup::Options> all = AllOptions();
  for (auto& options : all) options.connect_timeout = absl::Milliseconds(300);
  SetFaults({{.point = "peers.connect", .action = FaultAction::kFail}});
  const Groups groups = JoinAll(all);
  EXPECT_GE(FaultPointPassCount("peers.connect"), 3);
  SetFaults({});
  ASSERT_EQ(groups.size(), 2);
  EXPECT_THAT(groups[0]->Describe(), HasSubstr("RING over raw sockets"));
  EXPECT_EQ(groups[0]->generation(), 2);
  EXPECT_EQ(groups[1]->generation(), 2);
  ExpectSums(groups);
  LeaveAll(groups);
}

TEST_F(PeerGroupTest, WhenNoTransportCanBeUsedAllTasksSayWhy) {
  MakeCluster(2);
  std::vector<PeerGroup::Options> all = AllOptions();
  for (auto& options : all) {
    options.connect_timeout = absl::Milliseconds(100);
    options.transports.shared_memory = false;
    options.transports.raw_sockets = false;
  }
  SetFaults({{.point = "peers.connect", .action = FaultAction::kFail}});
  const auto results = TryJoinAll(all);
  SetFaults({});
  EXPECT_FALSE(results[0].ok());
  EXPECT_THAT(results[1].status().message(),
              HasSubstr("failed before the group was formed"));
  EXPECT_EQ(GroupErrorKindOf(results[1].status()), GroupErrorKind::kPeerFailed);
}

TEST_F(PeerGroupTest, AFailureOfOneTaskEndsTheOthersWithItsCause) {
  const Groups groups = FormCluster(3);
  ASSERT_EQ(groups.size(), 3);
  absl::Status at_0;
  absl::Status at_1;
  std::thread reducing([&] { at_0 = AllReduce(*groups[0]); });
  std::thread leaving(
      [&] { at_1 = groups[1]->Leave(absl::OkStatus(), kPatience); });
  absl::Status own = absl::DataLossError("a record is truncated");
  own.SetPayload("type.muster/ExitCode", absl::Cord("138"));
  EXPECT_EQ(groups[2]->Leave(own, kPatience), own);
  reducing.join();
  leaving.join();
  for (const absl::Status& status : {at_0, at_1}) {
    EXPECT_THAT(
        status,
        StatusIs(absl::StatusCode::kDataLoss,
                 AllOf(HasSubstr("worker 2 (localhost:"),
                       HasSubstr("has failed: a record is truncated"))));
    EXPECT_EQ(GroupErrorKindOf(status), GroupErrorKind::kPeerFailed);
    EXPECT_EQ(status.GetPayload("type.muster/ExitCode"), absl::Cord("138"));
  }
  EXPECT_THAT(at_0,
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("all-reduce of dense/kernel was ended")));
  // Every task keeps the first cause, even if other errors follow.
  EXPECT_EQ(groups[0]->Leave(absl::InternalError("x"), kPatience).code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(PeerGroupTest, AGroupThatIsDroppedWithoutLeavingHasFailed) {
  Groups groups = FormCluster(2);
  ASSERT_EQ(groups.size(), 2);
  std::thread dropping([&] { groups[1] = nullptr; });
  EXPECT_THAT(AllReduce(*groups[0]),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("ended without having left")));
  dropping.join();
}

TEST_F(PeerGroupTest, AnEarlyFinisherIsNoFailure) {
  MakeCluster(2);
  std::vector<PeerGroup::Options> all = AllOptions();
  all[1].report_interval = absl::Milliseconds(50);
  Groups groups = JoinAll(all);
  ASSERT_EQ(groups.size(), 2);
  std::thread early([&] {
    EXPECT_OK(groups[1]->Leave(absl::OkStatus(), kPatience));
    groups[1] = nullptr;
  });
  EXPECT_TRUE(lines_[1].Await("waiting for worker 0 to arrive at the end"));
  EXPECT_OK(groups[0]->cause());
  EXPECT_OK(groups[0]->Leave(absl::OkStatus(), kPatience));
  early.join();
  EXPECT_OK(groups[0]->cause());
}

TEST_F(PeerGroupTest, ACollectiveFailsIfATaskHasFinished) {
  MakeCluster(2);
  std::vector<PeerGroup::Options> all = AllOptions();
  // A task may still join the collective within this time.
  for (PeerGroup::Options& options : all) {
    options.heartbeat_timeout = absl::Seconds(5);
  }
  const Groups groups = JoinAll(all);
  ASSERT_EQ(groups.size(), 2);
  std::thread early([&] {
    EXPECT_THAT(groups[1]->Leave(absl::OkStatus(), kPatience),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  });
  EXPECT_THAT(AllReduce(*groups[0]),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("waits for worker 1"),
                             HasSubstr("fewer steps"))));
  early.join();
}

TEST_F(PeerGroupTest, ATaskThatDoesNotFinishIsNamed) {
  const Groups groups = FormCluster(2);
  ASSERT_EQ(groups.size(), 2);
  EXPECT_THAT(
      groups[0]->Leave(absl::OkStatus(), absl::Milliseconds(100)),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("worker 1")));
  EXPECT_THAT(groups[1]->Leave(absl::OkStatus(), kPatience),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("has failed: gave up waiting for worker 1")));
}

TEST_F(PeerGroupTest, ACollectiveThatExpiresNamesTheTaskAndEndsTheGroup) {
  const Groups groups = FormCluster(2);
  ASSERT_EQ(groups.size(), 2);
  Tensor tensor(DType::kFloat32, {1000});
  EXPECT_THAT(groups[0]->communicator(0)->AllReduce(
                  ReduceOp::kSum, SpanOf(tensor),
                  {.name = "dense/bias", .timeout = absl::Milliseconds(50)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("all-reduce of dense/bias")));
  EXPECT_THAT(AllReduce(*groups[1]),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("worker 0"), HasSubstr("dense/bias"))));
}

TEST_F(PeerGroupTest, AHangIsReportedWithWhereTheOthersAre) {
  MakeCluster(2);
  std::vector<PeerGroup::Options> all = AllOptions();
  all[0].hang_report_interval = absl::Milliseconds(100);
  const Groups groups = JoinAll(all);
  ASSERT_EQ(groups.size(), 2);
  groups[1]->NoteActivity("reading input", 7);
  std::thread hanging([&] { EXPECT_OK(AllReduce(*groups[0])); });
  EXPECT_TRUE(lines_[0].Await("of dense/kernel for 0 s"));
  EXPECT_TRUE(lines_[0].Await("worker 1 is in no collective"));
  EXPECT_TRUE(lines_[0].Await("step 7, reading input"));
  EXPECT_OK(AllReduce(*groups[1]));
  hanging.join();
  LeaveAll(groups);
}

}  // namespace
}  // namespace muster
