// Real processes on separate hosts while the network between them fails:
// partitions in one or both directions, slow and lossy links, resets, and one
// broken edge.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"
#include "tests/faults/network_namespaces.h"

namespace muster {
namespace {

using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kWorker2 = {TaskType::kWorker, 2};
constexpr TaskId kPs0 = {TaskType::kPs, 0};
constexpr TaskId kPs1 = {TaskType::kPs, 1};
constexpr int kRestartMe = 138;

// Silence is not detected before this time, except with a short --peer_timeout.
constexpr absl::Duration kSoonerThanOthers = absl::Seconds(8);

// Set by main().
absl::Status entered;
NetworkNamespaces* network = nullptr;

class NetworkFaultsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!entered.ok()) GTEST_SKIP() << entered;
  }

  // Removes partitions that a failed test has left.
  void TearDown() override {
    for (int from = 0; entered.ok() && from < network->host_count(); ++from) {
      for (int to = 0; to < network->host_count(); ++to) {
        network->Deliver(from, to).IgnoreError();
      }
    }
  }

  // Creates a cluster with each task on a separate host, in the order of
  // ClusterSpec::Members().
  void CreateCluster(int worker_count, int ps_count) {
    ASSERT_OK_AND_ASSIGN(
        cluster_,
        ClusterUnderTest::Create(
            testing::UnitTest::GetInstance()->current_test_info()->name(),
            worker_count, ps_count));
    members_ = cluster_->cluster().Members();
    std::vector<ClusterUnderTest::Host> hosts;
    for (int host = 0; host < network->host_count(); ++host) {
      hosts.push_back({absl::StrCat(network->address(host), ":2222"),
                       network->Prefix(host)});
    }
    ASSERT_OK(cluster_->Place(hosts));
  }

  // Starts a program that checks that each of its steps was applied once.
  void StartCounting(int recovery_count, const std::string& heartbeat_timeout,
                     int closure_count = 500) {
    ASSERT_NO_FATAL_FAILURE(CreateCluster(2, 2));
    cluster_->set_program("tests/faults/counting_program");
    ASSERT_OK(cluster_->StartAll(
        {"--coordinator_timeout=60s", "--set",
         absl::StrCat("closures=", closure_count), "--set",
         absl::StrCat("recoveries=", recovery_count), "--set",
         absl::StrCat("heartbeat_timeout=", heartbeat_timeout)}));
    ASSERT_OK(process(kChief).AwaitLine("through: "));
  }

  int Host(TaskId task) const {
    return static_cast<int>(std::find(members_.begin(), members_.end(), task) -
                            members_.begin());
  }
  ProcessUnderTest& process(TaskId task) { return cluster_->process(task); }

  void SplitBytes(TaskId a, TaskId b) {
    ASSERT_OK(network->Drop(Host(a), Host(b)));
    ASSERT_OK(network->Drop(Host(b), Host(a)));
  }
  void Heal(TaskId a, TaskId b) {
    ASSERT_OK(network->Deliver(Host(a), Host(b)));
    ASSERT_OK(network->Deliver(Host(b), Host(a)));
  }
  // Drops all packets between a task and all others.
  void CutOff(TaskId task) {
    for (const TaskId& other : members_) {
      if (!(other == task)) SplitBytes(task, other);
    }
  }
  void HealAll(TaskId task) {
    for (const TaskId& other : members_) {
      if (!(other == task)) Heal(task, other);
    }
  }

  void ExpectEndsWith(TaskId task, int exit_code) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process(task).AwaitEnd());
    EXPECT_EQ(end.ShellCode(), exit_code) << task << " wrote:\n"
                                          << process(task).output();
  }
  void ExpectEveryClosureCountedOnce() {
    for (const TaskId& task : members_) ExpectEndsWith(task, 0);
    EXPECT_THAT(process(kChief).output(),
                HasSubstr("every closure counted once: "));
  }

  std::vector<TaskId> members_;
  std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_F(NetworkFaultsTest, APartitionOfAWorkerShorterThanTheTimeoutLosesNoTask) {
  ASSERT_NO_FATAL_FAILURE(
      StartCounting(/*recovery_count=*/0, "20s", /*closure_count=*/2000));
  const absl::Time begin = absl::Now();
  CutOff(kWorker0);
  // Waits two seconds, or until the other worker has run most of the closures.
  for (int line = 0; line < 60 && absl::Now() - begin < absl::Seconds(2);
       ++line) {
    ASSERT_OK(process(kChief).AwaitLine("through: "));
  }
  HealAll(kWorker0);
  ExpectEveryClosureCountedOnce();
  EXPECT_THAT(process(kChief).output(), Not(HasSubstr("is lost")));
}

TEST_F(NetworkFaultsTest, APartitionOfAWorkerLongerThanTheTimeoutIsOutlived) {
  ASSERT_NO_FATAL_FAILURE(StartCounting(/*recovery_count=*/1, "1s"));
  CutOff(kWorker0);
  ASSERT_OK(process(kChief).AwaitLine("is lost"));
  ASSERT_OK(process(kChief).AwaitLine("through: "));
  HealAll(kWorker0);
  ASSERT_OK(process(kChief).AwaitLine("has reconnected"));
  ExpectEveryClosureCountedOnce();
}

TEST_F(NetworkFaultsTest, AWorkerThatOnlyReceivesIsReplaced) {
  ASSERT_NO_FATAL_FAILURE(StartCounting(/*recovery_count=*/1, "1s"));
  ASSERT_OK(network->Drop(Host(kWorker0), Host(kChief)));
  ASSERT_OK(process(kChief).AwaitLine("is lost"));
  ASSERT_OK(process(kChief).AwaitLine("through: "));
  ASSERT_OK(network->Deliver(Host(kWorker0), Host(kChief)));
  ASSERT_OK(process(kChief).AwaitLine("has reconnected"));
  ExpectEveryClosureCountedOnce();
}

TEST_F(NetworkFaultsTest, AWorkerThatOnlySendsIsReplaced) {
  ASSERT_NO_FATAL_FAILURE(StartCounting(/*recovery_count=*/1, "1s"));
  ASSERT_OK(network->Drop(Host(kChief), Host(kWorker0)));
  ASSERT_OK(process(kChief).AwaitLine("is lost"));
  ASSERT_OK(process(kChief).AwaitLine("through: "));
  ASSERT_OK(network->Deliver(Host(kChief), Host(kWorker0)));
  ASSERT_OK(process(kChief).AwaitLine("has reconnected"));
  ExpectEveryClosureCountedOnce();
}

TEST_F(NetworkFaultsTest, APartitionFromAServerNamesTheServer) {
  ASSERT_NO_FATAL_FAILURE(CreateCluster(2, 2));
  cluster_->set_epochs(100000);
  ASSERT_OK(cluster_->StartAll(
      {"--coordinator_timeout=2s", "--server_return_timeout=1s"}));
  ASSERT_OK(process(kChief).AwaitLine("Epoch 3/"));
  SplitBytes(kChief, kPs0);
  ExpectEndsWith(kChief, kRestartMe);
  EXPECT_THAT(process(kChief).output(), HasSubstr("ps 0"));
  // The server ends by itself: no task can tell it that the job has ended.
  ExpectEndsWith(kPs0, kRestartMe);
  for (const TaskId& task : {kWorker0, kWorker1, kPs1}) {
    EXPECT_OK(process(task).AwaitEnd());
  }
  Heal(kChief, kPs0);
}

TEST_F(NetworkFaultsTest, AServerThatDoesNotHearAWorkerIsNamedWithTheWorker) {
  ASSERT_NO_FATAL_FAILURE(
      StartCounting(/*recovery_count=*/0, "20s", /*closure_count=*/2000));
  ASSERT_OK(network->Drop(Host(kWorker0), Host(kPs0)));
  ASSERT_OK_AND_ASSIGN(const std::string line,
                       process(kChief).AwaitLine("cannot run closures"));
  EXPECT_THAT(line,
              ContainsRegex("worker 0 .*cannot run closures: .*ps 0 [(]"));
  ASSERT_OK(network->Deliver(Host(kWorker0), Host(kPs0)));
  ExpectEveryClosureCountedOnce();
}

// Three synchronous workers, of which the last two cannot reach each other. The
// parameter is the flags that select how they exchange gradients.
class BrokenEdgeTest
    : public NetworkFaultsTest,
      public testing::WithParamInterface<std::vector<std::string>> {
 protected:
  void Start(const std::string& peer_timeout) {
    ASSERT_NO_FATAL_FAILURE(CreateCluster(3, 0));
    cluster_->set_epochs(1000000);
    std::vector<std::string> flags = GetParam();
    flags.push_back(absl::StrCat("--peer_timeout=", peer_timeout));
    flags.push_back("--hang_report_interval=5s");
    ASSERT_OK(cluster_->StartAll(flags));
    ASSERT_OK(process(kWorker0).AwaitLine("Epoch 3/"));
  }

  void StartAndCut(const std::string& peer_timeout) {
    ASSERT_NO_FATAL_FAILURE(Start(peer_timeout));
    SplitBytes(kWorker1, kWorker2);
    cut_time_ = absl::Now();
  }

  void ExpectAllNameBothEnds() {
    for (const TaskId& task : members_) {
      ExpectEndsWith(task, kRestartMe);
      // "worker 1 (10.9.0.2:2222, ...) is lost: ...; last heard of 29s ago by
      // worker 2 (10.9.0.3:2222, ...)".
      EXPECT_THAT(process(task).output(),
                  AnyOf(ContainsRegex(Verdict(kWorker1, kWorker2)),
                        ContainsRegex(Verdict(kWorker2, kWorker1))));
    }
  }

  void ExpectAllTrainOn() {
    ASSERT_OK(process(kWorker0).AwaitLine("Epoch "));
    for (const TaskId& task : members_) {
      EXPECT_THAT(process(task).output(), Not(HasSubstr("is lost")));
    }
  }

  std::string Verdict(TaskId lost, TaskId by) const {
    const auto place = [&](TaskId task) {
      return absl::StrCat(task.ToString(), " .", network->address(Host(task)),
                          ":2222, incarnation [0-9a-f]+.");
    };
    return absl::StrCat(place(lost), " is lost: .* ago by ", place(by));
  }

  absl::Time cut_time_;
};

// Gradients are also sent over the network.
class BrokenEdgeOfNetworkTest : public BrokenEdgeTest {};

TEST_P(BrokenEdgeOfNetworkTest, LastsAsLongAsPeerTimeoutSays) {
  ASSERT_NO_FATAL_FAILURE(StartAndCut("18s"));
  ASSERT_NO_FATAL_FAILURE(ExpectAllNameBothEnds());
  EXPECT_GE(absl::Now() - cut_time_, absl::Seconds(15));
}

TEST_P(BrokenEdgeTest, EndsSoonerWithAShortTimeout) {
  ASSERT_NO_FATAL_FAILURE(StartAndCut("2s"));
  ASSERT_NO_FATAL_FAILURE(ExpectAllNameBothEnds());
  EXPECT_LT(absl::Now() - cut_time_, kSoonerThanOthers);
}

TEST_P(BrokenEdgeOfNetworkTest, ThatHealsInTimeLosesNoTask) {
  ASSERT_NO_FATAL_FAILURE(StartAndCut("45s"));
  // One end of the edge and the third worker report the collective that waits.
  // The partition lasts longer than gRPC tolerates silence by default.
  while (absl::Now() - cut_time_ < absl::Seconds(13)) {
    ASSERT_OK(process(kWorker1).AwaitLine("has not heard of worker 2"));
    ASSERT_OK(process(kWorker0).AwaitLine("has not heard of worker "));
  }
  Heal(kWorker1, kWorker2);
  ExpectAllTrainOn();
}

TEST_P(BrokenEdgeOfNetworkTest, InOneDirectionEndsAllAndNamesBothEnds) {
  ASSERT_NO_FATAL_FAILURE(Start("2s"));
  ASSERT_OK(network->Drop(Host(kWorker1), Host(kWorker2)));
  const absl::Time begin = absl::Now();
  ASSERT_NO_FATAL_FAILURE(ExpectAllNameBothEnds());
  EXPECT_LT(absl::Now() - begin, kSoonerThanOthers);
}

TEST_P(BrokenEdgeOfNetworkTest, OfAWorkerAndAllOthersEndsAllAndNamesIt) {
  ASSERT_NO_FATAL_FAILURE(Start("2s"));
  CutOff(kWorker2);
  for (const TaskId& task : members_) ExpectEndsWith(task, kRestartMe);
  for (const TaskId& task : {kWorker0, kWorker1}) {
    EXPECT_THAT(process(task).output(),
                ContainsRegex("worker 2 .* is lost: no sign of life"));
  }
}

TEST_P(BrokenEdgeOfNetworkTest, OfAWorkerAndAllOthersThatHealsLosesNoTask) {
  ASSERT_NO_FATAL_FAILURE(Start("45s"));
  CutOff(kWorker2);
  ASSERT_OK(process(kWorker0).AwaitLine("worker 2"));
  HealAll(kWorker2);
  ExpectAllTrainOn();
}

const std::vector<std::string>& RawSockets() {
  static const auto* const flags =
      new std::vector<std::string>{"--noshared_memory"};
  return *flags;
}

const std::vector<std::string>& Grpc() {
  static const auto* const flags =
      new std::vector<std::string>{"--noshared_memory", "--noraw_sockets"};
  return *flags;
}

INSTANTIATE_TEST_SUITE_P(Transports, BrokenEdgeTest,
                         testing::Values(std::vector<std::string>(),
                                         RawSockets(), Grpc()));
INSTANTIATE_TEST_SUITE_P(Transports, BrokenEdgeOfNetworkTest,
                         testing::Values(RawSockets(), Grpc()));

TEST_F(NetworkFaultsTest, ALossOfATenthOfAllPacketsLosesNoTask) {
  constexpr int kPercent = 10;
  ASSERT_NO_FATAL_FAILURE(
      StartCounting(/*recovery_count=*/0, "20s", /*closure_count=*/500));
  for (const TaskId& task : members_) {
    ASSERT_OK(network->LoseAtRandom(Host(task), kPercent));
  }
  for (int line = 0; line < 4; ++line) {
    ASSERT_OK(process(kChief).AwaitLine("through: "));
  }
  for (const TaskId& task : members_) {
    ASSERT_OK(network->LoseNone(Host(task), kPercent));
  }
  ExpectEveryClosureCountedOnce();
  EXPECT_THAT(process(kChief).output(), Not(HasSubstr("is lost")));
}

TEST_F(NetworkFaultsTest, ConnectionsThatAreResetLoseAndDoubleNothing) {
  constexpr int kResets = 3;
  ASSERT_NO_FATAL_FAILURE(StartCounting(kResets, "5s"));
  for (int reset = 0; reset < kResets; ++reset) {
    ASSERT_OK(network->ResetConnections(Host(kWorker0)));
    ASSERT_OK(process(kChief).AwaitLine("has reconnected"));
  }
  ExpectEveryClosureCountedOnce();
}

TEST_F(NetworkFaultsTest, ASlowLinkLosesNoTask) {
  ASSERT_NO_FATAL_FAILURE(
      StartCounting(/*recovery_count=*/0, "5s", /*closure_count=*/1000));
  ASSERT_OK(network->LimitRate(Host(kWorker0), 1'000'000));
  ExpectEveryClosureCountedOnce();
  EXPECT_THAT(process(kChief).output(), Not(HasSubstr("is lost")));
  ASSERT_OK(network->RemoveLimit(Host(kWorker0)));
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  muster::entered = muster::NetworkNamespaces::Enter();
  std::unique_ptr<muster::NetworkNamespaces> network;
  if (muster::entered.ok()) {
    auto created = muster::NetworkNamespaces::Create(5);
    if (!created.ok()) {
      std::cerr << created.status() << "\n";
      return 1;
    }
    network = *std::move(created);
    muster::network = network.get();
  }
  return RUN_ALL_TESTS();
}
