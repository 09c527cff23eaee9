// Real processes are killed and suspended during training.
#include <signal.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs0 = {TaskType::kPs, 0};
constexpr TaskId kPs1 = {TaskType::kPs, 1};

// The maximum time until a job that cannot continue has ended.
constexpr absl::Duration kEndOfRunMax = absl::Seconds(30);

class LostProcessTest : public testing::Test {
 protected:
  LostProcessTest()
      : cluster_(*ClusterUnderTest::Create(
            testing::UnitTest::GetInstance()->current_test_info()->name(), 2,
            2)) {}

  void StartTraining(int epochs) {
    cluster_->set_epochs(epochs);
    ASSERT_OK(cluster_->StartAll(
        {"--coordinator_timeout=2s", "--server_return_timeout=1s"}));
  }

  void AwaitEpoch(int epoch) {
    ASSERT_OK(cluster_->process(kChief).AwaitLine(
        absl::StrCat("Epoch ", epoch, "/")));
  }

  void ExpectEndsWith(TaskId task, int exit_code) {
    const absl::StatusOr<ProcessEnd> end = cluster_->process(task).AwaitEnd();
    ASSERT_OK(end);
    EXPECT_EQ(end->ShellCode(), exit_code) << task << " wrote:\n"
                                           << cluster_->process(task).output();
  }

  const std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_F(LostProcessTest, SucceedsAfterReplacingAKilledWorkerTwice) {
  StartTraining(400);
  for (int epoch : {10, 100}) {
    AwaitEpoch(epoch);
    cluster_->process(kWorker1).SendSignal(SIGKILL);
    ExpectEndsWith(kWorker1, 128 + SIGKILL);
    ASSERT_OK(cluster_->Start(kWorker1));
  }
  ExpectEndsWith(kChief, 0);
  for (const TaskId& task : {kWorker0, kWorker1, kPs0, kPs1}) {
    ExpectEndsWith(task, 0);
  }
}

TEST_F(LostProcessTest, ContinuesWithTheRemainingWorker) {
  StartTraining(100);
  AwaitEpoch(10);
  cluster_->process(kWorker0).SendSignal(SIGKILL);
  ExpectEndsWith(kChief, 0);
  ExpectEndsWith(kWorker1, 0);
}

TEST_F(LostProcessTest, AStoppedWorkerDoesNotDelayTraining) {
  StartTraining(100);
  AwaitEpoch(10);
  cluster_->process(kWorker0).SendSignal(SIGSTOP);
  ExpectEndsWith(kChief, 0);
  ExpectEndsWith(kWorker1, 0);
  // After it is continued, the worker detects that the job has ended.
  cluster_->process(kWorker0).SendSignal(SIGCONT);
  EXPECT_OK(cluster_->process(kWorker0).AwaitEnd());
}

TEST_F(LostProcessTest, ALostServerEndsTheJobWithItsName) {
  StartTraining(100000);
  AwaitEpoch(10);
  cluster_->process(kPs1).SendSignal(SIGKILL);
  const absl::Time killed = absl::Now();
  ExpectEndsWith(kChief, 138);
  EXPECT_LT(absl::Now() - killed, kEndOfRunMax);
  EXPECT_THAT(cluster_->process(kChief).output(),
              AllOf(HasSubstr("ps 1"), HasSubstr("incarnation")));
  // The other tasks are notified and end.
  for (const TaskId& task : {kWorker0, kWorker1, kPs0}) {
    EXPECT_OK(cluster_->process(task).AwaitEnd());
  }
}

TEST_F(LostProcessTest, ALostCoordinatorLeavesNoProcesses) {
  StartTraining(100000);
  AwaitEpoch(10);
  cluster_->process(kChief).SendSignal(SIGKILL);
  // The tasks exit with a request to be restarted, to serve the next
  // coordinator.
  for (const TaskId& task : {kWorker0, kWorker1, kPs0, kPs1}) {
    ExpectEndsWith(task, 138);
  }
}

TEST_F(LostProcessTest, TasksWaitForANewCoordinatorIfTheFlagIsSet) {
  cluster_->set_epochs(100000);
  ASSERT_OK(cluster_->StartAll(
      {"--coordinator_timeout=2s", "--on_coordinator_loss=wait"}));
  AwaitEpoch(10);
  cluster_->process(kChief).SendSignal(SIGKILL);
  ExpectEndsWith(kChief, 128 + SIGKILL);
  cluster_->set_epochs(3);
  ASSERT_OK(cluster_->Start(kChief));
  ExpectEndsWith(kChief, 0);
  for (const TaskId& task : {kWorker0, kWorker1, kPs0, kPs1}) {
    ExpectEndsWith(task, 0);
  }
}

}  // namespace
}  // namespace muster
