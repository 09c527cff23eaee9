// Real processes of a cluster with two leaders: two coordinators, or two first
// workers that train in sync, are started at the same time. One of them trains
// to the end. The other one ends soon, and names the process that leads the
// cluster.
#include <signal.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs0 = {TaskType::kPs, 0};
constexpr TaskId kPs1 = {TaskType::kPs, 1};
constexpr int kRestartMe = 138;

// A small part of --startup_timeout, which is ten minutes by default.
constexpr absl::Duration kSoon = absl::Seconds(20);

// The other tasks that are started before the two leaders, and those that are
// started after them.
struct Order {
  std::string name;
  std::vector<TaskId> before;
  std::vector<TaskId> after;
};

class TwoLeadersTest : public testing::TestWithParam<Order> {
 protected:
  using Leaders = std::array<std::unique_ptr<ProcessUnderTest>, 2>;

  static std::string TestName() {
    return absl::StrCat(
        testing::UnitTest::GetInstance()->current_test_suite()->name(), "_",
        GetParam().name);
  }

  // Servers write the weights for both leaders.
  static std::vector<std::string> FlagsOf(TaskId task) {
    if (task.type != TaskType::kPs) return {};
    return {"--checkpoint_root=/"};
  }

  // Starts two processes of `task` with different folders for the results.
  void StartTwo(const std::string& executable, TaskId task) {
    for (const TaskId& other : GetParam().before) {
      ASSERT_OK(cluster_->Start(other, FlagsOf(other)));
      ASSERT_OK(cluster_->process(other).AwaitLine("incarnation"));
    }
    for (size_t i = 0; i < leaders_.size(); ++i) {
      ASSERT_OK_AND_ASSIGN(
          leaders_[i],
          ProcessUnderTest::Start(
              {executable, "--threads=1", "--job=examples/digits/digits.job",
               "--set", "epochs=5",
               absl::StrCat("--run_dir=", cluster_->run_dir(), "_leader_", i)},
              {{"TF_CONFIG", cluster_->TfConfig(task)}}));
    }
    for (const TaskId& other : GetParam().after) {
      ASSERT_OK(cluster_->Start(other, FlagsOf(other)));
    }
    start_ = absl::Now();
  }

  // Waits for both leaders. Returns the one that ended with `exit_code`, after
  // the other one has ended with 0.
  const ProcessUnderTest* AwaitRefusedLeader(int exit_code) {
    const ProcessUnderTest* refused_leader = nullptr;
    for (const auto& leader : leaders_) {
      const absl::StatusOr<ProcessEnd> end = leader->AwaitEnd();
      EXPECT_OK(end);
      if (!end.ok() || end->ShellCode() == 0) continue;
      EXPECT_EQ(refused_leader, nullptr)
          << "neither trained: " << leader->output()
          << (refused_leader == nullptr ? "" : refused_leader->output());
      EXPECT_EQ(end->ShellCode(), exit_code) << leader->output();
      refused_leader = leader.get();
    }
    EXPECT_NE(refused_leader, nullptr) << "both trained";
    EXPECT_LT(absl::Now() - start_, kSoon);
    return refused_leader;
  }

  const ProcessUnderTest& OtherThan(const ProcessUnderTest* leader) const {
    return leader == leaders_[0].get() ? *leaders_[1] : *leaders_[0];
  }

  void ExpectSucceeds(TaskId task) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                         cluster_->process(task).AwaitEnd());
    EXPECT_EQ(end.ShellCode(), 0) << task << " wrote:\n"
                                  << cluster_->process(task).output();
  }

  std::unique_ptr<ClusterUnderTest> cluster_;
  Leaders leaders_;
  absl::Time start_;
};

std::string OrderName(const testing::TestParamInfo<Order>& info) {
  return info.param.name;
}

class TwoCoordinatorsTest : public TwoLeadersTest {};

TEST_P(TwoCoordinatorsTest, OneTrainsAndTheOtherIsToldWhoHasTheCluster) {
  ASSERT_OK_AND_ASSIGN(cluster_, ClusterUnderTest::Create(TestName(), 2, 2));
  ASSERT_NO_FATAL_FAILURE(StartTwo("coordinator/coordinator", kChief));
  // The exit code lets a cluster manager restart it, for the time after the
  // other one has ended.
  const ProcessUnderTest* const refused_leader = AwaitRefusedLeader(kRestartMe);
  ASSERT_NE(refused_leader, nullptr);
  EXPECT_THAT(
      refused_leader->output(),
      AllOf(ContainsRegex("another coordinator uses this cluster: worker [01] "
                          "[(]localhost:[0-9]+[)] works for chief 0 on host "),
            HasSubstr(absl::StrCat(", process ",
                                   OtherThan(refused_leader).pid(), ";"))));
  for (const TaskId& task : {kWorker0, kWorker1, kPs0, kPs1}) {
    ExpectSucceeds(task);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Orders, TwoCoordinatorsTest,
    testing::Values(
        Order{"AfterTheOtherTasks", {kPs0, kPs1, kWorker0, kWorker1}, {}},
        Order{"BeforeTheOtherTasks", {}, {kPs0, kPs1, kWorker0, kWorker1}},
        // Each coordinator may have one of the workers for a while.
        Order{"BeforeTheFirstWorker", {kPs0, kPs1, kWorker1}, {kWorker0}}),
    OrderName);

// Which workers run when the second coordinator is started, while the first one
// trains.
struct Workers {
  std::string name;
  std::vector<TaskId> started;
  std::vector<TaskId> killed;
};

class SecondCoordinatorTest : public testing::TestWithParam<Workers> {};

TEST_P(SecondCoordinatorTest, IsToldWhoHasTheClusterWithoutTheFirstWorker) {
  const std::string name = absl::StrCat("SecondCoordinator_", GetParam().name);
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       ClusterUnderTest::Create(name, 2, 2));
  constexpr char kProgram[] = "tests/faults/counting_program";
  cluster->set_program(kProgram);
  const std::string end_file = absl::StrCat(cluster->run_dir(), "_is_over");
  std::filesystem::remove(end_file);
  const std::vector<std::string> flags = {
      "--set",
      absl::StrCat("min_workers=",
                   GetParam().started.size() - GetParam().killed.size()),
      "--set", absl::StrCat("until=", end_file)};
  for (const TaskId& task : {kPs0, kPs1}) ASSERT_OK(cluster->Start(task));
  for (const TaskId& task : GetParam().started) {
    ASSERT_OK(cluster->Start(task));
  }
  ASSERT_OK_AND_ASSIGN(ProcessUnderTest* const first,
                       cluster->Start(kChief, flags));
  for (const TaskId& task : GetParam().started) {
    ASSERT_OK(cluster->process(task).AwaitLine("working for chief 0"));
  }
  ASSERT_OK(first->AwaitLine("through: "));
  for (const TaskId& task : GetParam().killed) {
    cluster->process(task).SendSignal(SIGKILL);
    ASSERT_OK(cluster->process(task).AwaitEnd());
  }

  std::vector<std::string> arguments = {kProgram, "--threads=1"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  ASSERT_OK_AND_ASSIGN(
      const auto second,
      ProcessUnderTest::Start(arguments,
                              {{"TF_CONFIG", cluster->TfConfig(kChief)}}));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, second->AwaitEnd(kSoon));
  EXPECT_EQ(end.ShellCode(), kRestartMe) << second->output();
  EXPECT_THAT(second->output(),
              AllOf(HasSubstr(absl::StrCat(
                        "another coordinator uses this cluster: worker 1 (",
                        *cluster->cluster().Address(kWorker1),
                        ") works for chief 0 on host ")),
                    HasSubstr(absl::StrCat(", process ", first->pid(), ";"))));

  std::ofstream(end_file) << "enough";
  ASSERT_OK_AND_ASSIGN(const ProcessEnd first_end, first->AwaitEnd());
  EXPECT_EQ(first_end.ShellCode(), 0) << first->output();
}

INSTANTIATE_TEST_SUITE_P(
    Workers, SecondCoordinatorTest,
    testing::Values(Workers{"WhichNeverCame", {kWorker1}, {}},
                    Workers{
                        "WhichWasKilled", {kWorker0, kWorker1}, {kWorker0}}),
    [](const testing::TestParamInfo<Workers>& info) {
      return info.param.name;
    });

// The first coordinator has lost its only worker. The next worker that starts
// may be taken by the second coordinator, which cannot use it.
TEST(LastWorkerTest, IsLeftToTheFirstCoordinator) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       ClusterUnderTest::Create("LastWorker", 2, 2));
  constexpr char kProgram[] = "tests/faults/counting_program";
  cluster->set_program(kProgram);
  const std::vector<std::string> flags = {"--set", "min_workers=1",
                                          "--set", "recoveries=0",
                                          "--set", "closures=5000"};
  for (const TaskId& task : {kPs0, kPs1, kWorker0}) {
    ASSERT_OK(cluster->Start(task));
  }
  ASSERT_OK_AND_ASSIGN(ProcessUnderTest* const first,
                       cluster->Start(kChief, flags));
  ASSERT_OK(first->AwaitLine("through: "));
  cluster->process(kWorker0).SendSignal(SIGKILL);
  ASSERT_OK(first->AwaitLine("no other is left"));
  std::vector<std::string> arguments = {kProgram};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  ASSERT_OK_AND_ASSIGN(
      const auto second,
      ProcessUnderTest::Start(arguments,
                              {{"TF_CONFIG", cluster->TfConfig(kChief)}}));
  ASSERT_OK(second->AwaitLine("works for another job"));
  ASSERT_OK(cluster->Start(kWorker1));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, second->AwaitEnd(kSoon));
  EXPECT_EQ(end.ShellCode(), kRestartMe) << second->output();
  EXPECT_THAT(second->output(),
              HasSubstr("another coordinator uses this cluster: "));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd first_end, first->AwaitEnd());
  EXPECT_EQ(first_end.ShellCode(), 0) << first->output();
}

// A coordinator that waits for the first worker dials the other workers several
// times a second.
TEST(RejectingWorkerTest, LogsTheRejectionTwice) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       ClusterUnderTest::Create("RejectingWorker", 2, 2));
  for (const TaskId& task : {kPs0, kPs1, kWorker1, kChief}) {
    ASSERT_OK(cluster->Start(task));
  }
  const ProcessUnderTest& worker = cluster->process(kWorker1);
  ASSERT_OK(cluster->process(kWorker1).AwaitLine("working for chief 0"));
  ASSERT_OK_AND_ASSIGN(
      const auto second,
      ProcessUnderTest::Start(
          {"coordinator/coordinator", "--job=examples/digits/digits.job",
           absl::StrCat("--run_dir=", cluster->run_dir(), "_second")},
          {{"TF_CONFIG", cluster->TfConfig(kChief)}}));
  ASSERT_OK(second->AwaitLine(
      absl::StrCat("worker 1 (", *cluster->cluster().Address(kWorker1),
                   ": works for chief 0 on host ")));
  const std::vector<std::string> rejections =
      absl::StrSplit(worker.output(), "rejected a coordinator");
  EXPECT_EQ(rejections.size() - 1, 2) << worker.output();
}

class TwoFirstWorkersTest : public TwoLeadersTest {};

TEST_P(TwoFirstWorkersTest, OneTrainsAndTheOtherIsToldWhoHasTheAddress) {
  ASSERT_OK_AND_ASSIGN(cluster_, ClusterUnderTest::Create(TestName(), 2, 0));
  cluster_->set_epochs(5);
  ASSERT_NO_FATAL_FAILURE(StartTwo("worker/worker", kWorker0));
  const ProcessUnderTest* const refused_leader =
      AwaitRefusedLeader(/*exit_code=*/2);
  ASSERT_NE(refused_leader, nullptr);
  // Compares "incarnation 0123456789abcdef", from the first line of the winner.
  const std::string winner = OtherThan(refused_leader).output();
  EXPECT_THAT(
      refused_leader->output(),
      AllOf(HasSubstr(absl::StrCat(
                "worker 0 (", *cluster_->cluster().Address(kWorker0), ", ",
                winner.substr(winner.find("incarnation"), 28))),
            HasSubstr("is already there, at the address of this task")));
  ExpectSucceeds(kWorker1);
}

INSTANTIATE_TEST_SUITE_P(Orders, TwoFirstWorkersTest,
                         testing::Values(Order{"AfterTheOther", {kWorker1}, {}},
                                         Order{
                                             "BeforeTheOther", {}, {kWorker1}}),
                         OrderName);

}  // namespace
}  // namespace muster
