// Synchronous workers are killed or terminated, and restarted. They resume, and
// the result is bit-identical to that of an uninterrupted run.

#include <signal.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/cluster/task_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};

class ResumeTest : public ::testing::Test {
 protected:
  // Clusters with the same name share a run directory and the backup in it.
  static std::unique_ptr<ClusterUnderTest> Workers(const std::string& name,
                                                   int count) {
    auto cluster = ClusterUnderTest::Create(name, count, 0);
    EXPECT_OK(cluster);
    (*cluster)->set_program("tests/e2e/resume_program");
    return *std::move(cluster);
  }

  static void ExpectEndsWith(ProcessUnderTest& process, int code) {
    const auto end = process.AwaitEnd();
    ASSERT_OK(end);
    EXPECT_EQ(end->ShellCode(), code) << process.output();
  }

  static void KillAll(ClusterUnderTest& cluster) {
    for (const TaskId& task : cluster.cluster().Members()) {
      cluster.process(task).SendSignal(SIGKILL);
    }
    for (const TaskId& task : cluster.cluster().Members()) {
      ASSERT_OK(cluster.process(task).AwaitEnd());
    }
  }

  // Returns the line with the result of training.
  static std::string AwaitResult(ClusterUnderTest& cluster) {
    const auto line = cluster.process(kWorker0).AwaitLine("ended with ");
    EXPECT_OK(line);
    for (const TaskId& task : cluster.cluster().Members()) {
      ExpectEndsWith(cluster.process(task), 0);
    }
    return line.ok() ? *line : "";
  }

  // Returns the result of an uninterrupted run.
  static std::string RunUninterrupted() {
    const auto cluster = Workers("uninterrupted", 2);
    EXPECT_OK(cluster->StartAll());
    return AwaitResult(*cluster);
  }
};

TEST_F(ResumeTest, IsBitIdenticalAfterKillsAtRandomTimes) {
  const std::string uninterrupted = RunUninterrupted();
  const auto cluster = Workers("killed", 2);
  constexpr int kLivesMax = 12;
  int resumed_count = 0;
  bool has_ended = false;
  // The lifetime of the processes is measured in epochs, so that it does not
  // depend on the speed of the machine. The processes end shortly after the
  // line is printed, between two saves.
  for (int life = 0, epoch = 2; life < kLivesMax && !has_ended; ++life) {
    ASSERT_OK(cluster->Start(kWorker1));
    ASSERT_OK(cluster->Start(kWorker0));
    ProcessUnderTest& chief = cluster->process(kWorker0);
    const bool reaches_training = life % 4 != 3;
    if (reaches_training) {
      ASSERT_OK(chief.AwaitLine(absl::StrCat("Epoch ", epoch, "/")));
      epoch += 3 + FoldIn(7, life) % 12;
    }
    has_ended = chief.AwaitEnd(absl::Milliseconds(FoldIn(8, life) % 20)).ok();
    if (!has_ended) KillAll(*cluster);
    if (testing::Value(chief.output(), HasSubstr("Resuming in epoch"))) {
      ++resumed_count;
    }
  }
  if (!has_ended) {
    ASSERT_OK(cluster->Start(kWorker1));
    ASSERT_OK(cluster->Start(kWorker0));
  }
  EXPECT_EQ(AwaitResult(*cluster), uninterrupted);
  EXPECT_GT(resumed_count, 0);
}

TEST_F(ResumeTest, IsBitIdenticalAfterResumingWithOtherNumbersOfWorkers) {
  const std::string uninterrupted = RunUninterrupted();
  std::unique_ptr<ClusterUnderTest> cluster;
  int epoch = 5;
  for (const int worker_count : {2, 4, 1, 3}) {
    cluster = Workers("resized", worker_count);
    ASSERT_OK(cluster->StartAll());
    ProcessUnderTest& chief = cluster->process(kWorker0);
    if (epoch > 5) {
      ASSERT_OK(chief.AwaitLine("Resuming in epoch"));
    }
    if (worker_count == 3) break;
    ASSERT_OK(chief.AwaitLine(absl::StrCat("Epoch ", epoch, "/")));
    KillAll(*cluster);
    epoch += 5;
  }
  EXPECT_EQ(AwaitResult(*cluster), uninterrupted);
}

TEST_F(ResumeTest, ATerminatedWorkerSavesWithAllOthersFirst) {
  const std::string uninterrupted = RunUninterrupted();
  const auto cluster = Workers("preempted", 2);
  ASSERT_OK(cluster->StartAll());
  ASSERT_OK(cluster->process(kWorker0).AwaitLine("Epoch 3/"));
  cluster->process(kWorker1).SendSignal(SIGTERM);
  ExpectEndsWith(cluster->process(kWorker0), 143);
  ExpectEndsWith(cluster->process(kWorker1), 143);
  EXPECT_THAT(cluster->process(kWorker0).output(), HasSubstr("Saved to"));
  ASSERT_OK(cluster->Start(kWorker1));
  ASSERT_OK(cluster->Start(kWorker0));
  ASSERT_OK(cluster->process(kWorker0).AwaitLine("Resuming in epoch"));
  EXPECT_EQ(AwaitResult(*cluster), uninterrupted);
}

}  // namespace
}  // namespace muster
