// Real processes under a wall clock that is set back by an hour.
#include <signal.h>

#include <memory>
#include <string>

#include "common/core/base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs1 = {TaskType::kPs, 1};

std::unique_ptr<ClusterUnderTest> StartTraining(int ps_count) {
  auto cluster = *ClusterUnderTest::Create(
      testing::UnitTest::GetInstance()->current_test_info()->name(), 2,
      ps_count);
  cluster->set_epochs(100000);
  for (const TaskId& task : cluster->cluster().Members()) {
    EXPECT_OK(cluster->Start(
        task,
        ps_count == 0 ? std::vector<std::string>{}
                      : std::vector<std::string>{"--server_return_timeout=1s"},
        {{"LD_PRELOAD", "tests/faults/libset_back_clock.so"}}));
  }
  return cluster;
}

// `process` ends with `status` and an error that names `task`.
void ExpectNamed(ProcessUnderTest& process, const std::string& task,
                 int status) {
  const absl::StatusOr<ProcessEnd> end = process.AwaitEnd();
  ASSERT_OK(end) << process.output();
  EXPECT_EQ(end->ShellCode(), status) << process.output();
  EXPECT_THAT(process.output(), HasSubstr(task));
}

TEST(SetBackClockTest, AStoppedServerIsNamed) {
  const std::unique_ptr<ClusterUnderTest> cluster = StartTraining(2);
  ASSERT_OK(cluster->process(kChief).AwaitLine("Epoch 3/"));
  cluster->process(kPs1).SendSignal(SIGSTOP);
  ExpectNamed(cluster->process(kChief), "ps 1", 1);
}

TEST(SetBackClockTest, AStoppedSynchronousWorkerIsNamed) {
  const std::unique_ptr<ClusterUnderTest> cluster = StartTraining(0);
  ASSERT_OK(cluster->process(kWorker0).AwaitLine("Epoch 3/"));
  cluster->process(kWorker1).SendSignal(SIGSTOP);
  ExpectNamed(cluster->process(kWorker0), "worker 1", 138);
}

}  // namespace
}  // namespace muster
