// Real processes train in sync on parameter servers, while workers are killed
// and suspended. Each update has the gradients of two of three workers.
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;

class SynchronousUpdatesTest : public testing::Test {
 protected:
  SynchronousUpdatesTest()
      : cluster_(*ClusterUnderTest::Create(
            testing::UnitTest::GetInstance()->current_test_info()->name(), 3,
            2)) {
    cluster_->set_program("tests/faults/fit_counting_program");
    ps_[0] = {TaskType::kPs, 0};
    ps_[1] = {TaskType::kPs, 1};
    for (int i = 0; i < 3; ++i) workers_[i] = {TaskType::kWorker, i};
  }

  void Start(int epochs) {
    ASSERT_OK(cluster_->StartAll(
        {"--set", absl::StrCat("epochs=", epochs), "--set", "steps=100",
         "--coordinator_return_timeout=0", "--set", "backup_workers=1"}));
  }

  void AwaitEpoch(int epoch) {
    ASSERT_OK(cluster_->process(kChief).AwaitLine(
        absl::StrCat("end of epoch ", epoch)));
  }

  void ExpectEndsWell(TaskId task) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                         cluster_->process(task).AwaitEnd());
    EXPECT_EQ(end.ShellCode(), 0) << task << " wrote:\n"
                                  << cluster_->process(task).output();
  }

  const std::unique_ptr<ClusterUnderTest> cluster_;
  TaskId workers_[3];
  TaskId ps_[2];
};

TEST_F(SynchronousUpdatesTest, CountsEachStepOnceWhileWorkersAreKilled) {
  Start(70);
  for (int i = 0; i < 4; ++i) {
    AwaitEpoch(10 + 12 * i);
    const TaskId victim = workers_[i % 3];
    cluster_->process(victim).SendSignal(SIGKILL);
    ASSERT_OK(cluster_->process(victim).AwaitEnd().status());
    ASSERT_OK(cluster_->Start(victim).status());
  }
  for (const TaskId task :
       {kChief, workers_[0], workers_[1], workers_[2], ps_[0], ps_[1]}) {
    ExpectEndsWell(task);
  }
  EXPECT_THAT(cluster_->process(kChief).output(),
              HasSubstr("every step counted once: 7000"));
}

// Two workers are enough for an update, so training ends although the third one
// does not answer.
TEST_F(SynchronousUpdatesTest, ASuspendedWorkerDelaysNoUpdate) {
  Start(60);
  AwaitEpoch(10);
  cluster_->process(workers_[1]).SendSignal(SIGSTOP);
  ExpectEndsWell(kChief);
  EXPECT_THAT(cluster_->process(kChief).output(),
              HasSubstr("every step counted once: 6000"));
  cluster_->process(workers_[1]).SendSignal(SIGCONT);
  ASSERT_OK(cluster_->process(workers_[1]).AwaitEnd().status());
  for (const TaskId task : {workers_[0], workers_[2]}) ExpectEndsWell(task);
}

}  // namespace
}  // namespace muster
