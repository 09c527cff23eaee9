// Real processes that find each other by name: with a DNS server that does not
// answer, an unknown name, names that are removed, and a worker that returns
// with another address.
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"
#include "tests/faults/network_namespaces.h"

namespace muster {
namespace {

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kServer = {TaskType::kPs, 0};
constexpr int kSpareHost = 4;
constexpr int kNameServer = 5;
// By default, gRPC resolves a name again only after 30 s.
constexpr absl::Duration kReturnTimeMax = absl::Seconds(5);

// Set by main().
absl::Status entered;
NetworkNamespaces* network = nullptr;

// A chief on host 0, workers on hosts 1 and 2, and a server on host 3.
class NameResolutionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!entered.ok()) GTEST_SKIP() << entered;
    ASSERT_OK(network->SetNames(names_));
    ASSERT_OK(network->SetSilentNameServer(kNameServer));
  }

  void CreateCluster(const std::string& run, bool by_name) {
    ASSERT_OK_AND_ASSIGN(
        cluster_, ClusterUnderTest::Create(absl::StrCat(Name(), run), 2, 1));
    cluster_->set_program("tests/faults/counting_program");
    by_name_ = by_name;
    ASSERT_OK(PlaceTasks());
  }
  absl::Status PlaceTasks() {
    std::vector<ClusterUnderTest::Host> hosts;
    for (const std::string name : {"chief", "worker-0", "worker-1", "ps-0"}) {
      const int host = names_.at(name);
      hosts.push_back(
          {absl::StrCat(by_name_ ? name : network->address(host), ":2222"),
           network->Prefix(host)});
    }
    return cluster_->Place(hosts);
  }

  // Returns the time from starting the cluster until closures have finished.
  absl::StatusOr<absl::Duration> StartUntilFirstClosures(int closure_count) {
    const absl::Time begin = absl::Now();
    RETURN_IF_ERROR(cluster_->StartAll(Flags(closure_count)));
    RETURN_IF_ERROR(process(kChief).AwaitLine("through: ").status());
    return absl::Now() - begin;
  }
  std::vector<std::string> Flags(int closure_count) const {
    return {"--coordinator_timeout=60s",
            "--set",
            absl::StrCat("closures=", closure_count),
            "--set",
            "recoveries=1",
            "--set",
            "heartbeat_timeout=5s"};
  }
  ProcessUnderTest& process(TaskId task) { return cluster_->process(task); }
  static std::string Name() {
    return testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  std::map<std::string, int> names_ = {
      {"chief", 0}, {"worker-0", 1}, {"worker-1", 2}, {"ps-0", 3}};
  bool by_name_ = false;
  std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_F(NameResolutionTest, ASilentNameServerCostsNothingForKnownNames) {
  ASSERT_NO_FATAL_FAILURE(CreateCluster("by_address", /*by_name=*/false));
  ASSERT_OK_AND_ASSIGN(const absl::Duration by_address,
                       StartUntilFirstClosures(1));
  ASSERT_NO_FATAL_FAILURE(CreateCluster("by_name", /*by_name=*/true));
  ASSERT_OK_AND_ASSIGN(const absl::Duration by_name,
                       StartUntilFirstClosures(1));
  EXPECT_LT(by_name, by_address + absl::Seconds(3));
  std::cout << "until the first closure: " << by_address << " by address, "
            << by_name << " by name\n";
}

TEST_F(NameResolutionTest, AWorkerThatReturnsWithAnotherAddressIsUsedSoon) {
  ASSERT_NO_FATAL_FAILURE(CreateCluster("", /*by_name=*/true));
  ASSERT_OK(StartUntilFirstClosures(100000));
  process(kWorker0).SendSignal(SIGKILL);
  ASSERT_OK(process(kChief).AwaitLine("is lost"));
  names_["worker-0"] = kSpareHost;
  ASSERT_OK(network->SetNames(names_));
  ASSERT_OK(PlaceTasks());
  ASSERT_OK(cluster_->Start(kWorker0, Flags(100000)));
  ASSERT_OK(process(kWorker0).AwaitLine("incarnation"));
  const absl::Time started = absl::Now();
  ASSERT_OK(process(kChief).AwaitLine("has reconnected"));
  const absl::Duration took = absl::Now() - started;
  EXPECT_LT(took, kReturnTimeMax);
  std::cout << "used at its new address after " << took << "\n";
}

TEST_F(NameResolutionTest, AJobEndsWithoutNames) {
  ASSERT_NO_FATAL_FAILURE(CreateCluster("", /*by_name=*/true));
  const std::string until =
      absl::StrCat(std::getenv("TEST_TMPDIR"), "/names_are_removed");
  ASSERT_OK(cluster_->StartAll(
      {"--set", "closures=1", "--set", absl::StrCat("until=", until)}));
  ASSERT_OK(process(kChief).AwaitLine("through: "));
  ASSERT_OK(network->SetNames({}));
  std::ofstream(until) << "yes";
  for (const TaskId task : {kChief, kWorker0, kWorker1, kServer}) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process(task).AwaitEnd());
    EXPECT_EQ(end.ShellCode(), 0) << process(task).output();
  }
}

TEST_F(NameResolutionTest, AWaitForANameSaysSo) {
  names_.erase("worker-1");
  ASSERT_OK(network->SetNames(names_));
  names_["worker-1"] = 2;
  ASSERT_NO_FATAL_FAILURE(CreateCluster("", /*by_name=*/true));
  ASSERT_OK(cluster_->Start(kChief, Flags(1)));
  ASSERT_OK_AND_ASSIGN(const std::string line,
                       process(kChief).AwaitLine("waiting for"));
  EXPECT_THAT(line,
              testing::HasSubstr(
                  "(worker-1:2222: the name worker-1 is still being looked "
                  "up, after "));
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  muster::entered = muster::NetworkNamespaces::Enter();
  std::unique_ptr<muster::NetworkNamespaces> network;
  if (muster::entered.ok()) {
    auto created = muster::NetworkNamespaces::Create(6);
    if (!created.ok()) {
      std::cerr << created.status() << "\n";
      return 1;
    }
    network = *std::move(created);
    muster::network = network.get();
  }
  return RUN_ALL_TESTS();
}
