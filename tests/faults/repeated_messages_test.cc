// Real processes behind links that deliver messages twice, or that send
// recorded connections again. The programs check that every step is applied
// exactly once.
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/status/testing/http_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/faulty_link.h"
#include "tests/cluster/metrics_page.h"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs0 = {TaskType::kPs, 0};
constexpr TaskId kPs1 = {TaskType::kPs, 1};

class RepeatedMessagesTest : public testing::Test {
 protected:
  RepeatedMessagesTest()
      : cluster_(*ClusterUnderTest::Create(
            testing::UnitTest::GetInstance()->current_test_info()->name(), 2,
            2)) {
    std::filesystem::remove_all(cluster_->run_dir());
  }

  ProcessUnderTest& process(TaskId task) { return cluster_->process(task); }

  FaultyLink* Link(TaskId task) {
    const absl::StatusOr<FaultyLink*> link = cluster_->Link(task);
    EXPECT_OK(link);
    return link.value_or(nullptr);
  }

  void StartCounting(int closure_count) {
    cluster_->set_program("tests/faults/counting_program");
    ASSERT_OK(
        cluster_->StartAll({"--shared_memory=false", "--status_port=0", "--set",
                            absl::StrCat("closures=", closure_count)}));
    AwaitRounds(4);
  }

  void AwaitRounds(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_OK(process(kChief).AwaitLine("through: "));
    }
  }

  // Waits until the task has refused repeated calls.
  void AwaitRefusals(TaskId server) {
    ASSERT_OK_AND_ASSIGN(const std::string line,
                         process(server).AwaitLine("status page: "));
    const std::string url = line.substr(line.find("http://"));
    double refused = 0;
    while (refused == 0) {
      ASSERT_OK(process(kChief).AwaitLine("through: "));
      ASSERT_OK_AND_ASSIGN(const HttpAnswer page, HttpGet(url, "/metrics"));
      refused = MetricOf(page.body, "muster_repeated_calls_refused_total");
    }
  }

  void ExpectAllSucceed(const std::string& last_line) {
    for (const TaskId& task : {kChief, kWorker0, kWorker1, kPs0, kPs1}) {
      ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process(task).AwaitEnd());
      ASSERT_EQ(end.ShellCode(), 0) << task << " wrote:\n"
                                    << process(task).output();
    }
    EXPECT_THAT(process(kChief).output(), HasSubstr(last_line));
  }

  const std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_F(RepeatedMessagesTest, TasksThatGetEveryMessageTwiceApplyItOnce) {
  for (const TaskId& task : {kPs0, kPs1, kWorker0, kWorker1}) {
    Link(task)->Duplicate();
  }
  StartCounting(/*closure_count=*/1000);
  AwaitRefusals(kPs0);
  AwaitRefusals(kPs1);
  ExpectAllSucceed("every closure counted once: ");
}

TEST(RepeatedOpeningsTest, SynchronousWorkersThatGetEveryMessageTwiceTrain) {
  for (const char* lanes : {"--raw_sockets", "--noraw_sockets"}) {
    ASSERT_OK_AND_ASSIGN(const auto cluster,
                         ClusterUnderTest::Create(
                             absl::StrCat("repeated_openings", lanes), 3, 0));
    cluster->set_epochs(5);
    for (const TaskId task : cluster->cluster().Members()) {
      ASSERT_OK_AND_ASSIGN(FaultyLink* const link, cluster->Link(task));
      link->Duplicate();
    }
    ASSERT_OK(cluster->StartAll({"--noshared_memory", lanes}));
    for (const TaskId task : cluster->cluster().Members()) {
      ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                           cluster->process(task).AwaitEnd());
      ASSERT_EQ(end.ShellCode(), 0) << task << " wrote:\n"
                                    << cluster->process(task).output();
    }
  }
}

TEST_F(RepeatedMessagesTest, MessagesThatServersGetAgainLaterChangeNothing) {
  const std::vector<FaultyLink*> links = {Link(kPs0), Link(kPs1)};
  StartCounting(/*closure_count=*/2000);
  for (int repetition = 0; repetition < 2; ++repetition) {
    for (FaultyLink* link : links) link->Replay();
    AwaitRounds(4);
  }
  AwaitRefusals(kPs0);
  AwaitRefusals(kPs1);
  ExpectAllSucceed("every closure counted once: ");
}

TEST_F(RepeatedMessagesTest, ClosuresThatAWorkerGetsAgainLaterCountOnce) {
  FaultyLink* const link = Link(kWorker0);
  StartCounting(/*closure_count=*/2000);
  link->Replay();
  AwaitRefusals(kWorker0);
  ExpectAllSucceed("every closure counted once: ");
  EXPECT_THAT(process(kChief).output(), Not(HasSubstr("is lost")));
}

TEST_F(RepeatedMessagesTest, ARollbackThatServersGetAgainLaterUndoesNothing) {
  FaultyLink* const link = Link(kPs0);
  cluster_->set_program("tests/faults/chaos_program");
  ASSERT_OK(cluster_->StartAll(
      {"--shared_memory=false", "--set", "seconds=1000", "--set",
       absl::StrCat("folder=", cluster_->run_dir(), "/checkpoints")}));
  ASSERT_OK(process(kChief).AwaitLine("durable: "));
  process(kPs1).SendSignal(SIGKILL);
  ASSERT_OK(process(kPs1).AwaitEnd());
  ASSERT_OK(cluster_->Start(kPs1));
  ASSERT_OK(process(kChief).AwaitLine("rolled back: "));
  // Every round checks that all steps so far were applied once.
  for (int repetition = 0; repetition < 3; ++repetition) {
    AwaitRounds(2);
    link->Replay();
  }
  AwaitRounds(4);
}

}  // namespace
}  // namespace muster
