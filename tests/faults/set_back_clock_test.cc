// Real processes under a wall clock that is set back by an hour.
#include <signal.h>

#include <fstream>
#include <memory>
#include <string>

#include "common/core/base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

constexpr TaskId kChief = ClusterUnderTest::kChief;

// Processes whose clock is set back when SetBack() is called.
class SetBackClockTest : public testing::Test {
 protected:
  void Start(int worker_count, int ps_count) {
    const std::string name =
        testing::UnitTest::GetInstance()->current_test_info()->name();
    ASSERT_OK_AND_ASSIGN(
        cluster_, ClusterUnderTest::Create(name, worker_count, ps_count));
    cluster_->set_epochs(100000);
    file_ = testing::TempDir() + "/clock_is_set_back_in_" + name;
    for (const TaskId& task : cluster_->cluster().Members()) {
      ASSERT_OK(
          cluster_->Start(task, {},
                          {{"LD_PRELOAD", "tests/faults/libset_back_clock.so"},
                           {"SET_BACK_CLOCK_FILE", file_}}));
    }
  }

  void SetBack() { std::ofstream(file_).put('1'); }

  std::unique_ptr<ClusterUnderTest> cluster_;
  std::string file_;
};

TEST_F(SetBackClockTest, AStoppedServerIsLost) {
  Start(2, 2);
  ASSERT_OK(cluster_->process(kChief).AwaitLine("Epoch 3/"));
  SetBack();
  cluster_->process({TaskType::kPs, 1}).SendSignal(SIGSTOP);
  EXPECT_THAT(cluster_->process(kChief).AwaitLine("is lost"),
              IsOkAndHolds(testing::HasSubstr("ps 1 ")));
}

TEST_F(SetBackClockTest, AStoppedWorkerEndsASynchronousGroupWithItsName) {
  Start(2, 0);
  ProcessUnderTest& survivor = cluster_->process({TaskType::kWorker, 0});
  ASSERT_OK(survivor.AwaitLine("Epoch 3/"));
  SetBack();
  cluster_->process({TaskType::kWorker, 1}).SendSignal(SIGSTOP);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, survivor.AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 138) << survivor.output();
  EXPECT_THAT(survivor.output(), testing::HasSubstr("worker 1"));
}

TEST_F(SetBackClockTest, SynchronousWorkersGoOnAndEndOnASignal) {
  Start(2, 0);
  ProcessUnderTest& first = cluster_->process({TaskType::kWorker, 0});
  ASSERT_OK(first.AwaitLine("Epoch 3/"));
  SetBack();
  ASSERT_OK(first.AwaitLine("Epoch 9/"));
  first.SendSignal(SIGTERM);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, first.AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 143) << first.output();
  ASSERT_OK_AND_ASSIGN(const ProcessEnd other,
                       cluster_->process({TaskType::kWorker, 1}).AwaitEnd());
  EXPECT_EQ(other.ShellCode(), 138);
}

}  // namespace
}  // namespace muster
