// Real processes: workers join and leave parameter-server training. The program
// itself checks that every step counts once.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;

class ChangingWorkersTest : public testing::Test {
 protected:
  ChangingWorkersTest()
      : cluster_(*ClusterUnderTest::Create("changing", 4, 2)),
        stop_file_(testing::TempDir() + "/changing_stop") {
    cluster_->set_program("tests/faults/counting_program");
    std::filesystem::remove(stop_file_);
  }

  static TaskId Worker(int index) { return {TaskType::kWorker, index}; }
  ProcessUnderTest& process(TaskId task) { return cluster_->process(task); }

  void AwaitRounds(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_OK(process(kChief).AwaitLine("through: "));
    }
  }

  // Starts a worker, and waits until it has run steps.
  void Join(int index) {
    ASSERT_OK(cluster_->Start(
        Worker(index), {},
        {{"MUSTER_FAULT", "worker.before_step@step=20:delay=1ms"}}));
    ASSERT_OK(process(Worker(index)).AwaitLine("at occurrence 20"));
  }

  void Drain(int index) {
    ASSERT_OK_AND_ASSIGN(
        const auto control,
        ProcessUnderTest::Start({"deploy/musterctl/musterctl", "drain",
                                 absl::StrCat("worker:", index),
                                 absl::StrCat("--status=", address_)}));
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, control->AwaitEnd());
    ASSERT_TRUE(end.ok()) << control->output();
    ASSERT_NO_FATAL_FAILURE(ExpectSuccess(Worker(index)));
  }

  void ExpectSuccess(TaskId task) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process(task).AwaitEnd());
    ASSERT_EQ(end.ShellCode(), 0) << task << " wrote:\n"
                                  << process(task).output();
  }

  const std::unique_ptr<ClusterUnderTest> cluster_;
  const std::string stop_file_;
  std::string address_;  // URL of the chief's status page.
};

TEST_F(ChangingWorkersTest, EveryStepCountsOnceFromTwoToFourToOne) {
  for (const TaskId& task : {TaskId{TaskType::kPs, 0}, TaskId{TaskType::kPs, 1},
                             Worker(0), Worker(1)}) {
    ASSERT_OK(cluster_->Start(task));
  }
  ASSERT_OK(cluster_->Start(
      kChief, {"--status_port=0", "--control_port=0", "--set", "min_workers=2",
               "--set", "until=" + stop_file_}));
  ASSERT_OK_AND_ASSIGN(const std::string line,
                       process(kChief).AwaitLine("status page: "));
  address_ = line.substr(line.find("http://"));
  ASSERT_NO_FATAL_FAILURE(AwaitRounds(2));
  for (const int index : {2, 3}) ASSERT_NO_FATAL_FAILURE(Join(index));
  for (const int index : {1, 2}) ASSERT_NO_FATAL_FAILURE(Drain(index));
  process(Worker(0)).SendSignal(SIGKILL);
  ASSERT_OK(process(Worker(0)).AwaitEnd());
  ASSERT_NO_FATAL_FAILURE(AwaitRounds(4));
  std::ofstream(stop_file_) << "now";
  for (const TaskId& task : {kChief, Worker(3), TaskId{TaskType::kPs, 0},
                             TaskId{TaskType::kPs, 1}}) {
    ASSERT_NO_FATAL_FAILURE(ExpectSuccess(task));
  }
  const std::string output = process(kChief).output();
  for (const int index : {2, 3}) {
    EXPECT_THAT(output, testing::ContainsRegex(absl::StrCat(
                            "worker ", index, " [^ ]+ has joined")));
  }
  EXPECT_THAT(output, HasSubstr("every closure counted once: "));
}

}  // namespace
}  // namespace muster
