// Real processes that are slow, or that are suspended for a while.
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
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

// While it exists, lets a process run for 3% of the time.
class Throttle {
 public:
  explicit Throttle(ProcessUnderTest* process)
      : process_(process), thread_([this] { Run(); }) {}
  ~Throttle() {
    {
      absl::MutexLock lock(&mutex_);
      is_over_ = true;
    }
    thread_.join();
    process_->SendSignal(SIGCONT);
  }

 private:
  void Run() {
    while (true) {
      process_->SendSignal(SIGCONT);
      if (IsOverAfter(absl::Milliseconds(3))) return;
      process_->SendSignal(SIGSTOP);
      if (IsOverAfter(absl::Milliseconds(97))) return;
    }
  }

  bool IsOverAfter(absl::Duration duration) {
    Clock* const clock = Clock::Real();
    absl::MutexLock lock(&mutex_);
    return clock->AwaitWithDeadline(&mutex_, absl::Condition(&is_over_),
                                    clock->Now() + duration);
  }

  ProcessUnderTest* const process_;
  absl::Mutex mutex_;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

class SlowTasksTest : public testing::Test {
 protected:
  SlowTasksTest()
      : cluster_(*ClusterUnderTest::Create(
            testing::UnitTest::GetInstance()->current_test_info()->name(), 2,
            2)) {
    std::filesystem::remove_all(cluster_->run_dir());
    cluster_->set_epochs(100000);
  }

  // Starts a job with checkpoints for recovery. `faults` are injected into ps
  // 1.
  void StartRecoverable(const std::string& faults) {
    cluster_->set_job("tests/faults/recovering_digits.job");
    for (const TaskId& task : {kPs0, kWorker0, kWorker1}) {
      ASSERT_OK(cluster_->Start(task));
    }
    // Muster's own executables inject no faults.
    cluster_->set_program("tests/faults/counting_program");
    ASSERT_OK(cluster_->Start(kPs1, {}, {{"MUSTER_FAULT", faults}}));
    cluster_->set_program("");
    ASSERT_OK(cluster_->Start(
        kChief, {"--set", absl::StrCat("recovery_dir=", cluster_->run_dir(),
                                       "/recovery")}));
  }

  ProcessUnderTest& process(TaskId task) { return cluster_->process(task); }

  const std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_F(SlowTasksTest, AWorkerWithLittleProcessorTimeIsNamedWithItsRatio) {
  ASSERT_OK(cluster_->StartAll());
  ASSERT_OK(process(kChief).AwaitLine("Epoch 3/"));
  const Throttle throttle(&process(kWorker1));
  EXPECT_THAT(
      process(kChief).AwaitLine("is slow"),
      IsOkAndHolds(AllOf(HasSubstr("worker 1 "), HasSubstr("times as long"))));
}

TEST_F(SlowTasksTest, AServerWhoseDiskStandsStillIsNamedAndTrainingGoesOn) {
  StartRecoverable("ps.while_saving@save=2:delay=8s");
  ASSERT_OK_AND_ASSIGN(const std::string line,
                       process(kChief).AwaitLine("to answer Save"));
  EXPECT_THAT(line, HasSubstr("waiting for ps 1 "));
  ASSERT_OK(process(kChief).AwaitLine("to answer Save, for 4s"));
  const std::string output = process(kChief).output();
  const size_t begin = output.find("to answer Save, for 2s");
  const size_t end = output.find("to answer Save, for 4s");
  ASSERT_LT(begin, end);
  EXPECT_TRUE(absl::StrContains(
      absl::string_view(output).substr(begin, end - begin), "Epoch "))
      << output;
}

TEST_F(SlowTasksTest, AFrozenNodeIsReportedAndRejoins) {
  StartRecoverable("");
  ASSERT_OK(process(kChief).AwaitLine("Epoch 5/"));
  for (const TaskId& task : {kWorker0, kPs0}) {
    process(task).SendSignal(SIGSTOP);
  }
  ASSERT_OK(
      process(kChief).AwaitLine("waiting for a parameter server to reconnect"));
  for (const TaskId& task : {kWorker0, kPs0}) {
    process(task).SendSignal(SIGCONT);
  }
  ASSERT_OK(process(kChief).AwaitLine(
      "all parameter servers still have their variables; training continues"));
  EXPECT_THAT(process(kChief).output(),
              AllOf(HasSubstr("worker 0 "), HasSubstr("ps 0 ")));
}

}  // namespace
}  // namespace muster
