// Real processes whose connections fail, and coordinators that are suspended or
// terminated.
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/faulty_link.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs0 = {TaskType::kPs, 0};
constexpr TaskId kPs1 = {TaskType::kPs, 1};
constexpr int kRestartMe = 138;

class LostCoordinatorTest : public testing::Test {
 protected:
  LostCoordinatorTest()
      : cluster_(*ClusterUnderTest::Create(
            testing::UnitTest::GetInstance()->current_test_info()->name(), 2,
            2)) {}

  ProcessUnderTest& process(TaskId task) { return cluster_->process(task); }

  // Starts training that does not end by itself.
  void StartTraining(const std::vector<std::string>& flags) {
    cluster_->set_epochs(100000);
    ASSERT_OK(cluster_->StartAll(flags));
    ASSERT_OK(process(kChief).AwaitLine("Epoch 5/"));
  }

  // Starts a program that checks that each of its steps is applied once.
  // `coordinator_timeout` applies to workers only: the variables of a server
  // that ends would be lost.
  void StartCounting(int recovery_count, const std::string& heartbeat_timeout,
                     const std::string& coordinator_timeout) {
    cluster_->set_program("tests/faults/counting_program");
    for (const TaskId& task : {kPs0, kPs1, kWorker0, kWorker1, kChief}) {
      const std::string timeout =
          task.type == TaskType::kPs ? "60s" : coordinator_timeout;
      ASSERT_OK(cluster_->Start(
          task, {absl::StrCat("--coordinator_timeout=", timeout),
                 "--shared_memory=false", "--set",
                 absl::StrCat("closures=", closure_count_), "--set",
                 absl::StrCat("recoveries=", recovery_count), "--set",
                 absl::StrCat("heartbeat_timeout=", heartbeat_timeout)}));
    }
    ASSERT_OK(process(kChief).AwaitLine("through: "));
  }

  void ExpectEndsWith(TaskId task, int exit_code) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process(task).AwaitEnd());
    EXPECT_EQ(end.ShellCode(), exit_code) << task << " wrote:\n"
                                          << process(task).output();
  }

  void ExpectEveryClosureCountedOnce() {
    for (const TaskId& task : {kChief, kWorker0, kWorker1, kPs0, kPs1}) {
      ExpectEndsWith(task, 0);
    }
    EXPECT_THAT(process(kChief).output(),
                HasSubstr("every closure counted once: "));
  }

  const std::unique_ptr<ClusterUnderTest> cluster_;
  int closure_count_ = 500;  // Minimum.
};

TEST_F(LostCoordinatorTest, AWorkerSurvivesConnectionResets) {
  ASSERT_OK_AND_ASSIGN(FaultyLink* const link, cluster_->Link(kWorker0));
  constexpr int kResets = 3;
  StartCounting(kResets, "5s", "10s");
  for (int reset = 0; reset < kResets; ++reset) {
    link->Reset();
    ASSERT_OK(process(kChief).AwaitLine("is lost"));
    ASSERT_OK(process(kWorker0).AwaitLine("for it to reconnect"));
    link->Heal();
    ASSERT_OK(process(kWorker0).AwaitLine("has reconnected"));
    ASSERT_OK(process(kChief).AwaitLine("has reconnected"));
  }
  ExpectEveryClosureCountedOnce();
}

class PartitionTest
    : public LostCoordinatorTest,
      public testing::WithParamInterface<FaultyLink::Direction> {};

// The partition lasts longer than the heartbeat timeout and shorter than the
// coordinator timeout.
TEST_P(PartitionTest, AWorkerSurvives) {
  ASSERT_OK_AND_ASSIGN(FaultyLink* const link, cluster_->Link(kWorker0));
  StartCounting(/*recovery_count=*/1, "1s", "60s");
  link->Silence(GetParam());
  ASSERT_OK(process(kChief).AwaitLine("is lost"));
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(process(kChief).AwaitLine("through: "));
  }
  link->Heal();
  ASSERT_OK(process(kChief).AwaitLine("has reconnected"));
  ExpectEveryClosureCountedOnce();
}

// The test does not apply to the other direction: a worker that receives
// messages from its coordinator keeps running, even if its own messages are
// lost.
TEST_P(PartitionTest, AWorkerThatReceivesNothingAsksToBeRestarted) {
  if (GetParam() == FaultyLink::Direction::kToClient) return;
  ASSERT_OK_AND_ASSIGN(FaultyLink* const link, cluster_->Link(kWorker0));
  StartCounting(/*recovery_count=*/1, "1s", "2s");
  link->Silence(GetParam());
  ExpectEndsWith(kWorker0, kRestartMe);
  link->Heal();
  ASSERT_OK(cluster_->Start(kWorker0));
  ASSERT_OK(process(kChief).AwaitLine("has reconnected"));
  ExpectEveryClosureCountedOnce();
}

std::string DirectionName(
    const testing::TestParamInfo<FaultyLink::Direction>& info) {
  switch (info.param) {
    case FaultyLink::Direction::kBoth:
      return "BothWays";
    case FaultyLink::Direction::kToServer:
      return "ToTheWorker";
    case FaultyLink::Direction::kToClient:
      return "FromTheWorker";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Directions, PartitionTest,
                         testing::Values(FaultyLink::Direction::kBoth,
                                         FaultyLink::Direction::kToServer,
                                         FaultyLink::Direction::kToClient),
                         DirectionName);

TEST_F(LostCoordinatorTest, WorkersWaitForAStoppedCoordinator) {
  StartCounting(/*recovery_count=*/2, "1s", "60s");
  process(kChief).SendSignal(SIGSTOP);
  for (const TaskId& task : {kWorker0, kWorker1}) {
    ASSERT_OK(process(task).AwaitLine("disconnected"));
  }
  process(kChief).SendSignal(SIGCONT);
  ExpectEveryClosureCountedOnce();
}

TEST_F(LostCoordinatorTest, WorkersOfACoordinatorStoppedTooLongAreReplaced) {
  StartCounting(/*recovery_count=*/2, "1s", "2s");
  process(kChief).SendSignal(SIGSTOP);
  for (const TaskId& task : {kWorker0, kWorker1}) {
    ExpectEndsWith(task, kRestartMe);
    EXPECT_THAT(process(task).output(),
                AllOf(HasSubstr("for it to reconnect"),
                      HasSubstr("did not reconnect within 2s")));
    ASSERT_OK(cluster_->Start(task));
  }
  process(kChief).SendSignal(SIGCONT);
  ExpectEveryClosureCountedOnce();
}

TEST_F(LostCoordinatorTest, AStoppedWorkerRejoinsWhenContinued) {
  StartCounting(/*recovery_count=*/1, "500ms", "2s");
  process(kWorker0).SendSignal(SIGSTOP);
  ASSERT_OK(process(kChief).AwaitLine("is lost: it has been silent"));
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(process(kChief).AwaitLine("through: "));
  }
  process(kWorker0).SendSignal(SIGCONT);
  ASSERT_OK(process(kChief).AwaitLine("has reconnected"));
  ExpectEveryClosureCountedOnce();
}

TEST_F(LostCoordinatorTest, TasksOfATerminatedCoordinatorAskToBeRestarted) {
  StartTraining({"--coordinator_timeout=2s"});
  process(kChief).SendSignal(SIGTERM);
  ExpectEndsWith(kChief, 128 + SIGTERM);
  for (const TaskId& task : {kWorker0, kWorker1, kPs0, kPs1}) {
    ExpectEndsWith(task, kRestartMe);
  }
}

// The connections of a suspended coordinator stay open.
TEST_F(LostCoordinatorTest, TasksOfASilentCoordinatorWaitForItOnce) {
  StartTraining({"--coordinator_timeout=6s"});
  process(kChief).SendSignal(SIGSTOP);
  const absl::Time start = absl::Now();
  for (const TaskId& task : {kWorker0, kWorker1, kPs0, kPs1}) {
    ExpectEndsWith(task, kRestartMe);
    EXPECT_LT(absl::Now() - start, absl::Seconds(10)) << task;
  }
  EXPECT_THAT(process(kPs0).output(), HasSubstr("has sent nothing for 6s"));
}

TEST_F(LostCoordinatorTest, WaitingTasksSurviveATerminatedCoordinator) {
  StartTraining({"--coordinator_timeout=2s", "--on_coordinator_loss=wait"});
  process(kChief).SendSignal(SIGTERM);
  ExpectEndsWith(kChief, 128 + SIGTERM);
  cluster_->set_epochs(3);
  ASSERT_OK(cluster_->Start(kChief));
  for (const TaskId& task : {kChief, kWorker0, kWorker1, kPs0, kPs1}) {
    ExpectEndsWith(task, 0);
  }
}

TEST_F(LostCoordinatorTest, ACoordinatorKilledWhileItWaitsForTasksIsReplaced) {
  cluster_->set_epochs(3);
  const std::vector<std::string> flags = {"--coordinator_timeout=1s",
                                          "--on_coordinator_loss=wait"};
  for (const TaskId& task : {kPs0, kPs1, kWorker0}) {
    ASSERT_OK(cluster_->Start(task, flags));
  }
  ASSERT_OK(cluster_->Start(kChief, flags));
  ASSERT_OK(process(kWorker0).AwaitLine("working for chief 0"));
  process(kChief).SendSignal(SIGKILL);
  ASSERT_OK(process(kChief).AwaitEnd());
  ASSERT_OK(process(kWorker0).AwaitLine("disconnected"));
  ASSERT_OK(cluster_->Start(kChief, flags));
  ASSERT_OK(cluster_->Start(kWorker1, flags));
  for (const TaskId& task : {kChief, kWorker0, kWorker1, kPs0, kPs1}) {
    ExpectEndsWith(task, 0);
  }
}

TEST_F(LostCoordinatorTest, TasksWithDifferentClustersEndImmediately) {
  ASSERT_OK_AND_ASSIGN(
      const ClusterSpec other,
      ClusterSpec::FromLists(
          {{TaskType::kChief, {*cluster_->cluster().Address(kChief)}},
           {TaskType::kWorker,
            {*cluster_->cluster().Address(kWorker0),
             *cluster_->cluster().Address(kWorker1)}},
           {TaskType::kPs, {*cluster_->cluster().Address(kPs0)}}}));
  ASSERT_OK(cluster_->Start(
      kWorker1, {absl::StrCat("--tf_config=", MakeTfConfig(other, kWorker1))}));
  ASSERT_OK(cluster_->StartAll());
  for (const TaskId& task : {kChief, kWorker0, kWorker1, kPs0, kPs1}) {
    ExpectEndsWith(task, 2);
    EXPECT_THAT(process(task).output(), HasSubstr("disagree about the cluster"))
        << task;
  }
}

TEST_F(LostCoordinatorTest, TasksWithSwappedRolesEndImmediately) {
  ASSERT_OK_AND_ASSIGN(
      const ClusterSpec other,
      ClusterSpec::FromLists(
          {{TaskType::kChief, {*cluster_->cluster().Address(kChief)}},
           {TaskType::kWorker,
            {*cluster_->cluster().Address(kPs0),
             *cluster_->cluster().Address(kPs1)}},
           {TaskType::kPs,
            {*cluster_->cluster().Address(kWorker0),
             *cluster_->cluster().Address(kWorker1)}}}));
  ASSERT_OK(cluster_->Start(
      kChief, {absl::StrCat("--tf_config=", MakeTfConfig(other, kChief))}));
  ASSERT_OK(cluster_->StartAll());
  for (const TaskId& task : {kChief, kWorker0, kWorker1, kPs0, kPs1}) {
    ExpectEndsWith(task, 2);
    EXPECT_THAT(process(task).output(), HasSubstr("under the wrong role"))
        << task;
  }
}

TEST_F(LostCoordinatorTest, OtherWorkersTakeOverFromOneThatCannotReachAServer) {
  ASSERT_OK_AND_ASSIGN(FaultyLink* const link, cluster_->Link(kPs0));
  closure_count_ = 5000;
  StartCounting(/*recovery_count=*/0, "5s", "10s");
  link->ResetCaller("worker 0");
  ASSERT_OK_AND_ASSIGN(const std::string line,
                       process(kChief).AwaitLine("cannot run closures"));
  EXPECT_THAT(line, AllOf(HasSubstr("worker 0 ("), HasSubstr("ps 0 (")));
  ExpectEveryClosureCountedOnce();
}

}  // namespace
}  // namespace muster
