// Real processes are killed and suspended with signals while they count their
// steps. The program itself checks that every step counts once.
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs0 = {TaskType::kPs, 0};
constexpr TaskId kPs1 = {TaskType::kPs, 1};

// Late enough that both workers are busy.
constexpr int kOccurrence = 60;

std::string NameOfTest() {
  return absl::StrReplaceAll(
      testing::UnitTest::GetInstance()->current_test_info()->name(),
      {{"/", "_"}});
}

class ExactlyOnceProcessesTest : public testing::Test {
 protected:
  ExactlyOnceProcessesTest()
      : cluster_(*ClusterUnderTest::Create(NameOfTest(), 2, 2)) {
    cluster_->set_program("tests/faults/counting_program");
  }

  ProcessUnderTest& process(TaskId task) { return cluster_->process(task); }

  // Injects `fault` into `task` only.
  void StartWithFault(TaskId task, const std::string& fault,
                      const std::vector<std::string>& flags = {}) {
    ASSERT_OK(cluster_->Start(task, flags, {{"MUSTER_FAULT", fault}}));
  }

  // Starts the remaining tasks. The program continues until `recovery_count`
  // lost workers have recovered.
  void StartCounting(int recovery_count,
                     const std::string& heartbeat_timeout = "5s") {
    ASSERT_OK(cluster_->StartAll(
        {"--set", absl::StrCat("recoveries=", recovery_count), "--set",
         absl::StrCat("heartbeat_timeout=", heartbeat_timeout)}));
  }

  void ExpectKilled(TaskId task) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process(task).AwaitEnd());
    EXPECT_EQ(end.ShellCode(), 128 + SIGKILL) << process(task).output();
  }

  void Replace(TaskId task) {
    ExpectKilled(task);
    ASSERT_OK(cluster_->Start(task));
  }

  void ExpectEveryClosureCountedOnce() {
    for (const TaskId& task : {kChief, kWorker0, kWorker1, kPs0, kPs1}) {
      ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process(task).AwaitEnd());
      ASSERT_EQ(end.ShellCode(), 0) << task << " wrote:\n"
                                    << process(task).output();
    }
    EXPECT_THAT(process(kChief).output(),
                HasSubstr("every closure counted once: "));
  }

  const std::unique_ptr<ClusterUnderTest> cluster_;
};

class KilledWorkerTest : public ExactlyOnceProcessesTest,
                         public testing::WithParamInterface<std::string> {};

TEST_P(KilledWorkerTest, EveryClosureCountsOnce) {
  StartWithFault(kWorker0, GetParam());
  StartCounting(/*recovery_count=*/1);
  Replace(kWorker0);
  ExpectEveryClosureCountedOnce();
}

std::string FaultName(const testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (const char c : info.param) {
    if (c == '@') break;
    name.push_back(c == '.' ? '_' : c);
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(FaultPoints, KilledWorkerTest,
                         // Each command contains many closures.
                         testing::Values("worker.on_command@command=4",
                                         "worker.before_input@step=60",
                                         "worker.before_step@step=60",
                                         "worker.after_step@step=60",
                                         "worker.before_report@step=60"),
                         FaultName);

class FailedCallTest : public ExactlyOnceProcessesTest,
                       public testing::WithParamInterface<std::string> {};

// The caller retries a call without knowing whether the server has applied it.
TEST_P(FailedCallTest, EveryClosureCountsOnce) {
  std::vector<std::string> faults;
  for (int i = 0; i < 20; ++i) {
    faults.push_back(
        absl::StrCat(GetParam(), "@push=", kOccurrence + 7 * i, ":fail"));
  }
  const std::string all = absl::StrJoin(faults, ",");
  StartWithFault(kPs0, all);
  StartWithFault(kPs1, all);
  StartCounting(/*recovery_count=*/0);
  ExpectEveryClosureCountedOnce();
  for (const TaskId& server : {kPs0, kPs1}) {
    EXPECT_THAT(process(server).output(),
                HasSubstr(absl::StrCat("fault point ", GetParam(),
                                       " is injected at occurrence ",
                                       kOccurrence + 7 * 19)));
  }
}

INSTANTIATE_TEST_SUITE_P(FaultPoints, FailedCallTest,
                         testing::Values("ps.before_apply",
                                         "ps.after_apply_before_ack"),
                         FaultName);

TEST_F(ExactlyOnceProcessesTest, WorkersDieWhileWaitingForAReply) {
  StartWithFault(kPs0, absl::StrCat("ps.after_apply_before_ack@push=",
                                    kOccurrence, ":delay=1s"));
  StartCounting(/*recovery_count=*/2);
  ASSERT_OK(process(kPs0).AwaitLine("ps.after_apply_before_ack is injected"));
  // One of the workers waits for the delayed reply. Its step is applied on at
  // least one server.
  process(kWorker0).SendSignal(SIGKILL);
  process(kWorker1).SendSignal(SIGKILL);
  Replace(kWorker0);
  Replace(kWorker1);
  ExpectEveryClosureCountedOnce();
}

TEST_F(ExactlyOnceProcessesTest, EveryClosureCountsOnceWhileWorkersDie) {
  constexpr uint64_t kSeed = 20;
  constexpr int kKills = 8;
  RandomStream random(FoldIn(kSeed, "kills"));
  StartCounting(/*recovery_count=*/kKills);
  for (int kill = 0; kill < kKills; ++kill) {
    SCOPED_TRACE(absl::StrCat("kill ", kill, " of seed ", kSeed));
    const uint64_t rounds = 1 + random.Below(6);
    for (uint64_t round = 0; round < rounds; ++round) {
      ASSERT_OK(process(kChief).AwaitLine("through: "));
    }
    const TaskId victim = random.Below(2) == 0 ? kWorker0 : kWorker1;
    process(victim).SendSignal(SIGKILL);
    Replace(victim);
    // The coordinator must have connected to a worker to detect its loss.
    ASSERT_OK(process(kChief).AwaitLine("has reconnected"));
  }
  ExpectEveryClosureCountedOnce();
}

TEST_F(ExactlyOnceProcessesTest, IgnoresTheLateStepOfALostWorker) {
  // The worker is suspended in the middle of a step and continues later. The
  // second fault shows that it has continued.
  StartWithFault(kWorker0, absl::StrCat("worker.before_step@step=", kOccurrence,
                                        ":delay=1s,worker.after_step@step=",
                                        kOccurrence, ":delay=1ms"));
  StartCounting(/*recovery_count=*/2, "500ms");
  ASSERT_OK(process(kWorker0).AwaitLine("worker.before_step is injected"));
  process(kWorker0).SendSignal(SIGSTOP);
  ASSERT_OK(process(kChief).AwaitLine("is lost: it has been silent"));
  // Another worker has completed the steps of the lost worker.
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(process(kChief).AwaitLine("through: "));
  }
  process(kWorker0).SendSignal(SIGCONT);
  ASSERT_OK(process(kWorker0).AwaitLine("worker.after_step is injected"));
  ASSERT_OK(process(kChief).AwaitLine("has reconnected"));
  // The program waits for a second recovery, so it checks the counts after the
  // late step.
  process(kWorker0).SendSignal(SIGKILL);
  Replace(kWorker0);
  ExpectEveryClosureCountedOnce();
}

}  // namespace
}  // namespace muster
