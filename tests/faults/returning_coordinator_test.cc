// Coordinators that are killed and started again, while their workers and
// servers keep running.
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs0 = {TaskType::kPs, 0};
constexpr TaskId kPs1 = {TaskType::kPs, 1};
constexpr int kRestartMe = 138;

class ReturningCoordinatorTest : public testing::Test {
 protected:
  ReturningCoordinatorTest()
      : cluster_(*ClusterUnderTest::Create(
            testing::UnitTest::GetInstance()->current_test_info()->name(), 2,
            2)) {
    cluster_->set_program("tests/faults/fit_counting_program");
  }

  ProcessUnderTest& process(TaskId task) { return cluster_->process(task); }

  // Starts the tasks with these settings of the program.
  void Start(const std::vector<std::string>& settings) {
    flags_ = {"--run_dir", cluster_->run_dir()};
    for (const std::string& setting : settings) {
      flags_.push_back("--set");
      flags_.push_back(setting);
    }
    ASSERT_OK(cluster_->StartAll(flags_));
  }

  // Kills the coordinator and starts it again.
  void KillCoordinator() {
    process(kChief).SendSignal(SIGKILL);
    ASSERT_OK(process(kChief).AwaitEnd().status());
    ASSERT_OK(cluster_->Start(kChief, flags_).status());
  }

  void ExpectEndsWith(TaskId task, int exit_code) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process(task).AwaitEnd());
    EXPECT_EQ(end.ShellCode(), exit_code) << task << " wrote:\n"
                                          << process(task).output();
  }

  void ExpectEveryStepCountedOnce() {
    for (const TaskId& task : {kChief, kWorker0, kWorker1, kPs0, kPs1}) {
      ExpectEndsWith(task, 0);
    }
    EXPECT_THAT(process(kChief).output(),
                HasSubstr("every step counted once: "));
  }

  const std::unique_ptr<ClusterUnderTest> cluster_;
  std::vector<std::string> flags_;
};

TEST_F(ReturningCoordinatorTest, ContinuesWithinAnEpoch) {
  Start({"epochs=1", "steps=40000"});
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(process(kChief).AwaitLine("after step"));
    ASSERT_OK(process(kChief).AwaitLine("after step"));
    KillCoordinator();
    ASSERT_OK(process(kChief).AwaitLine("continuing the training"));
  }
  ExpectEveryStepCountedOnce();
}

TEST_F(ReturningCoordinatorTest, ContinuesInSync) {
  Start({"epochs=1", "steps=6000", "backup_workers=0"});
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(process(kChief).AwaitLine("after step"));
    KillCoordinator();
    ASSERT_OK(process(kChief).AwaitLine("continuing the training"));
  }
  ExpectEveryStepCountedOnce();
}

TEST_F(ReturningCoordinatorTest, ContinuesBetweenEpochs) {
  Start({"epochs=150", "steps=100"});
  for (const char* const line : {"epoch 3", "epoch 40", "epoch 80"}) {
    ASSERT_OK(process(kChief).AwaitLine(line));
    KillCoordinator();
    ASSERT_OK(process(kChief).AwaitLine("continuing the training"));
  }
  ExpectEveryStepCountedOnce();
}

TEST_F(ReturningCoordinatorTest, ContinuesWithSeveralStepsInAClosure) {
  Start({"epochs=60", "steps=250", "steps_per_execution=32"});
  for (const char* const line : {"epoch 3", "epoch 30"}) {
    ASSERT_OK(process(kChief).AwaitLine(line));
    KillCoordinator();
    ASSERT_OK(process(kChief).AwaitLine("continuing the training"));
  }
  ExpectEveryStepCountedOnce();
}

TEST_F(ReturningCoordinatorTest, ContinuesWithAWorkerThatWasLost) {
  Start({"epochs=100", "steps=100"});
  ASSERT_OK(process(kChief).AwaitLine("epoch 3"));
  process(kWorker1).SendSignal(SIGKILL);
  KillCoordinator();
  ASSERT_OK(process(kWorker1).AwaitEnd().status());
  ASSERT_OK(cluster_->Start(kWorker1, flags_).status());
  ASSERT_OK(process(kChief).AwaitLine("continuing the training"));
  ExpectEveryStepCountedOnce();
}

TEST_F(ReturningCoordinatorTest,
       ContinuesWithServersThatHaveRestoredTheirLogs) {
  cluster_->keep_server_logs();
  Start({"epochs=100", "steps=100"});
  ASSERT_OK(process(kChief).AwaitLine("epoch 3"));
  process(kChief).SendSignal(SIGKILL);
  ASSERT_OK(process(kChief).AwaitEnd().status());
  for (const TaskId& task : {kPs0, kPs1}) {
    process(task).SendSignal(SIGKILL);
    ASSERT_OK(process(task).AwaitEnd().status());
    ASSERT_OK(cluster_->Start(task, flags_).status());
  }
  ASSERT_OK(cluster_->Start(kChief, flags_).status());
  ASSERT_OK(process(kChief).AwaitLine("continuing the training"));
  ExpectEveryStepCountedOnce();
}

// The tasks cannot continue the training. They end, and begin again.
class AllTasksBeginAgainTest : public ReturningCoordinatorTest {
 protected:
  void ExpectAllEndAndBeginAgain(absl::string_view reason) {
    ASSERT_OK(process(kChief).AwaitEnd().status());
    EXPECT_THAT(process(kChief).output(), HasSubstr(std::string(reason)));
    for (const TaskId& task : {kChief, kWorker0, kWorker1, kPs0, kPs1}) {
      ExpectEndsWith(task, kRestartMe);
    }
    for (const TaskId& task : {kPs0, kPs1, kWorker0, kWorker1, kChief}) {
      ASSERT_OK(cluster_->Start(task, flags_).status());
    }
    ExpectEveryStepCountedOnce();
    EXPECT_THAT(process(kChief).output(),
                Not(HasSubstr("continuing the training")));
  }
};

TEST_F(AllTasksBeginAgainTest, AfterTheLossOfAServer) {
  Start({"epochs=60", "steps=100"});
  ASSERT_OK(process(kChief).AwaitLine("epoch 3"));
  process(kChief).SendSignal(SIGKILL);
  process(kPs1).SendSignal(SIGKILL);
  ASSERT_OK(process(kChief).AwaitEnd().status());
  ASSERT_OK(process(kPs1).AwaitEnd().status());
  ASSERT_OK(cluster_->Start(kPs1, flags_).status());
  ASSERT_OK(cluster_->Start(kChief, flags_).status());
  ExpectAllEndAndBeginAgain("ps 1 is another process");
}

TEST_F(AllTasksBeginAgainTest, IfAProgramRunsClosuresBeforeFit) {
  // Servers that are told to end remove their logs.
  cluster_->keep_server_logs();
  Start({"epochs=60", "steps=100", "custom_steps=10"});
  ASSERT_OK(process(kChief).AwaitLine("epoch 3"));
  KillCoordinator();
  ExpectAllEndAndBeginAgain("closures of a custom loop before");
}

}  // namespace
}  // namespace muster
