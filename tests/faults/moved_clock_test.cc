// Real processes whose wall clock is moved by an hour, and hosts whose
// monotonic clocks differ.
#include <signal.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/net/status/testing/http_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr TaskId kChief = ClusterUnderTest::kChief;

class ClockTest : public testing::Test {
 protected:
  // Longer than the time for which a task may be silent.
  static constexpr absl::Duration kLonger = absl::Seconds(7);

  // Expects that the leader logs epochs for this time.
  void ExpectTrainsFor(TaskId leader, absl::Duration duration) {
    const absl::Time begin = Clock::Real()->Now();
    while (Clock::Real()->Now() - begin < duration) {
      ASSERT_OK(process(leader).AwaitLine("Epoch "));
    }
  }

  void Create(int worker_count, int ps_count) {
    name_ = testing::UnitTest::GetInstance()->current_test_info()->name();
    ASSERT_OK_AND_ASSIGN(
        cluster_, ClusterUnderTest::Create(name_, worker_count, ps_count));
    cluster_->set_epochs(100000);
  }

  ProcessUnderTest& process(TaskId task) { return cluster_->process(task); }

  std::string name_;
  std::unique_ptr<ClusterUnderTest> cluster_;
};

// Processes whose clocks are moved by SetBack() or SetForward().
class MovedClockTest : public ClockTest {
 protected:
  void Start(int worker_count, int ps_count) {
    ASSERT_NO_FATAL_FAILURE(Create(worker_count, ps_count));
    file_ = testing::TempDir() + "/how_the_clock_is_moved_in_" + name_;
    for (const TaskId& task : cluster_->cluster().Members()) {
      ASSERT_OK(
          cluster_->Start(task, {},
                          {{"LD_PRELOAD", "tests/faults/libmoved_clock.so"},
                           {"MOVED_CLOCK_FILE", file_}}));
    }
  }

  void SetBack() { std::ofstream(file_).put('-'); }
  void SetForward() { std::ofstream(file_).put('+'); }

  std::string file_;
};

TEST_F(MovedClockTest, AStoppedServerIsLostAfterAStepBack) {
  Start(2, 2);
  ASSERT_OK(process(kChief).AwaitLine("Epoch 3/"));
  SetBack();
  process({TaskType::kPs, 1}).SendSignal(SIGSTOP);
  EXPECT_THAT(process(kChief).AwaitLine("is lost"),
              IsOkAndHolds(HasSubstr("ps 1 ")));
}

TEST_F(MovedClockTest, AStoppedWorkerEndsASynchronousGroupWithItsName) {
  Start(2, 0);
  ProcessUnderTest& survivor = process({TaskType::kWorker, 0});
  ASSERT_OK(survivor.AwaitLine("Epoch 3/"));
  SetBack();
  process({TaskType::kWorker, 1}).SendSignal(SIGSTOP);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, survivor.AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 138) << survivor.output();
  EXPECT_THAT(survivor.output(), HasSubstr("worker 1"));
}

TEST_F(MovedClockTest, SynchronousWorkersGoOnAndEndOnASignal) {
  Start(2, 0);
  ProcessUnderTest& first = process({TaskType::kWorker, 0});
  ASSERT_OK(first.AwaitLine("Epoch 3/"));
  SetBack();
  ASSERT_OK(first.AwaitLine("Epoch 9/"));
  SetForward();
  ASSERT_OK(first.AwaitLine("Epoch 15/"));
  first.SendSignal(SIGTERM);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, first.AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 143) << first.output();
  ASSERT_OK_AND_ASSIGN(const ProcessEnd other,
                       process({TaskType::kWorker, 1}).AwaitEnd());
  EXPECT_EQ(other.ShellCode(), 143) << process({TaskType::kWorker, 1}).output();
}

// The wall clock of one task in a cluster with parameter servers is set forward
// by an hour.
class ForwardClockTest : public MovedClockTest,
                         public testing::WithParamInterface<TaskId> {
 protected:
  void StartForward() {
    file_ = absl::StrCat(testing::TempDir(), "/set_forward_in_",
                         absl::StrReplaceAll(name_, {{"/", "_"}}));
    ASSERT_OK(cluster_->Start(GetParam(), {"--status_port=0"},
                              {{"LD_PRELOAD", "tests/faults/libmoved_clock.so"},
                               {"MOVED_CLOCK_FILE", file_}}));
  }

  void StartWithOneForward() {
    ASSERT_NO_FATAL_FAILURE(Create(2, 2));
    ASSERT_NO_FATAL_FAILURE(StartForward());
    ASSERT_OK(cluster_->StartAll());
  }

  void SetAnHourAhead() { std::ofstream(file_).put('>'); }

  // Waits until the task has read the new time.
  void AwaitIsAnHourAhead() {
    const std::string output = process(GetParam()).output();
    std::string url =
        output.substr(output.find("http://", output.find("status page: ")));
    url = url.substr(0, url.find('\n'));
    const absl::Time deadline =
        Clock::Real()->Now() + ProcessUnderTest::kPatience;
    double ahead_seconds = 0;
    while (ahead_seconds < 3500 && Clock::Real()->Now() < deadline) {
      ASSERT_OK_AND_ASSIGN(const HttpAnswer page, HttpGet(url, "/status.json"));
      const double time = nlohmann::json::parse(page.body).at("time");
      ahead_seconds =
          time - absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
    }
    EXPECT_GT(ahead_seconds, 3500);
  }

  // Returns the tasks for which the task waits, for a step or a response.
  std::vector<TaskId> AwaitedTasks() const {
    switch (GetParam().type) {
      case TaskType::kChief:
        return {{TaskType::kWorker, 0}, {TaskType::kWorker, 1}};
      case TaskType::kWorker:
        return {{TaskType::kPs, 0}, {TaskType::kPs, 1}};
      default:
        return {};
    }
  }

  // Expects that the task does not take the hour for an hour without messages.
  void ExpectNoTimeout() {
    for (const TaskId& task : cluster_->cluster().Members()) {
      for (const char* const timeout :
           {"is lost", "silent", "DEADLINE_EXCEEDED", "no step has finished",
            "gave up", "to answer Exchange, for 1m"}) {
        EXPECT_THAT(process(task).output(), Not(HasSubstr(timeout))) << task;
      }
    }
  }
};

// Waits of a running job are short; suspending the other tasks makes one wait
// long.
TEST_P(ForwardClockTest, EndsNothingAndIsNoTimeout) {
  constexpr absl::Duration kHeldFor = absl::Seconds(1);
  ASSERT_NO_FATAL_FAILURE(StartWithOneForward());
  ASSERT_OK(process(kChief).AwaitLine("Epoch 3/"));
  const std::vector<TaskId> held = AwaitedTasks();
  for (const TaskId& task : held) process(task).SendSignal(SIGSTOP);
  SetAnHourAhead();
  ASSERT_NO_FATAL_FAILURE(AwaitIsAnHourAhead());
  const absl::Time ahead_since = Clock::Real()->Now();
  while (Clock::Real()->Now() - ahead_since < kHeldFor) {
    ASSERT_NO_FATAL_FAILURE(AwaitIsAnHourAhead());
  }
  for (const TaskId& task : held) process(task).SendSignal(SIGCONT);
  ASSERT_NO_FATAL_FAILURE(ExpectTrainsFor(kChief, kLonger));
  process(kChief).SendSignal(SIGTERM);
  for (const TaskId& task : cluster_->cluster().Members()) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process(task).AwaitEnd());
    EXPECT_EQ(end.ShellCode(), task == kChief ? 143 : 138)
        << process(task).output();
  }
  ExpectNoTimeout();
}

TEST_P(ForwardClockTest, AStartIsNotGivenUp) {
  ASSERT_NO_FATAL_FAILURE(Create(2, 2));
  cluster_->set_epochs(3);
  ASSERT_NO_FATAL_FAILURE(StartForward());
  ASSERT_OK(process(GetParam()).AwaitLine("waiting for "));
  SetAnHourAhead();
  ASSERT_NO_FATAL_FAILURE(AwaitIsAnHourAhead());
  ASSERT_OK(cluster_->StartAll());
  for (const TaskId& task : cluster_->cluster().Members()) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process(task).AwaitEnd());
    EXPECT_EQ(end.ShellCode(), 0) << process(task).output();
  }
  ExpectNoTimeout();
}

INSTANTIATE_TEST_SUITE_P(Tasks, ForwardClockTest,
                         testing::Values(kChief, TaskId{TaskType::kWorker, 1},
                                         TaskId{TaskType::kPs, 1}));

// Uses time namespaces: the monotonic clock of some tasks is a day ahead.
class DifferentClocksTest : public ClockTest {
 protected:
  // Runs as root, or as root of a user namespace.
  void SetUp() override {
    const std::vector<std::vector<std::string>> ways = {
        {"unshare", "--time"},
        {"unshare", "--user", "--map-root-user", "--time"}};
    for (const std::vector<std::string>& way : ways) {
      std::vector<std::string> trial = way;
      trial.push_back("true");
      ASSERT_OK_AND_ASSIGN(const auto process, ProcessUnderTest::Start(trial));
      ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process->AwaitEnd());
      if (!end.ok()) continue;
      ahead_ = way;
      ahead_.insert(ahead_.end(), {"--monotonic=86400", "--"});
      return;
    }
    GTEST_SKIP() << "this process may not make time namespaces";
  }

  void StartWithThoseAhead(const std::vector<TaskId>& tasks) {
    for (const TaskId& task : tasks) cluster_->set_prefix(task, ahead_);
    ASSERT_OK(cluster_->StartAll());
  }

  void ExpectGoesOnWithoutLosses(TaskId leader) {
    ASSERT_NO_FATAL_FAILURE(ExpectTrainsFor(leader, kLonger));
    for (const TaskId& task : cluster_->cluster().Members()) {
      EXPECT_THAT(process(task).output(), Not(HasSubstr("is lost")));
    }
  }

  std::vector<std::string> ahead_;  // Start of a command whose clock is ahead.
};

// One task of each type is ahead, and the other is not.
TEST_F(DifferentClocksTest, WorkersAndParameterServersTrain) {
  ASSERT_NO_FATAL_FAILURE(Create(2, 2));
  StartWithThoseAhead({{TaskType::kWorker, 1}, {TaskType::kPs, 0}});
  ExpectGoesOnWithoutLosses(kChief);
}

TEST_F(DifferentClocksTest, SynchronousWorkersTrain) {
  ASSERT_NO_FATAL_FAILURE(Create(2, 0));
  StartWithThoseAhead({{TaskType::kWorker, 1}});
  ExpectGoesOnWithoutLosses({TaskType::kWorker, 0});
}

}  // namespace
}  // namespace muster
