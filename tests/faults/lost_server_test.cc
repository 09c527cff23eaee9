// Real processes: parameter servers are killed during Fit() and restarted, and
// a coordinator resumes training.
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs0 = {TaskType::kPs, 0};
constexpr TaskId kPs1 = {TaskType::kPs, 1};

constexpr int kStepsPerEpoch = 45;  // 1,437 examples in batches of 32.
// So many epochs that a job is still training when the test reads of its 20th
// epoch, even on a busy machine.
constexpr int kEpochs = 150;

// Returns the number of undone steps that the coordinator reported; -1 if none.
int UndoneStepCount(const std::string& output) {
  const std::vector<std::string> parts =
      absl::StrSplit(output, " steps are undone");
  if (parts.size() < 2) return -1;
  const size_t number = parts[parts.size() - 2].find_last_of(' ') + 1;
  int count = -1;
  return absl::SimpleAtoi(parts[parts.size() - 2].substr(number), &count)
             ? count
             : -1;
}

class LostServerTest : public testing::Test {
 protected:
  LostServerTest()
      : cluster_(*ClusterUnderTest::Create(
            testing::UnitTest::GetInstance()->current_test_info()->name(), 2,
            2)) {
    std::filesystem::remove_all(cluster_->run_dir());
    cluster_->set_job("tests/faults/recovering_digits.job");
  }

  void Train(int epochs, bool keeps_checkpoints,
             std::vector<std::string> chief_flags = {}) {
    cluster_->set_epochs(epochs);
    // Long, so that the test cannot pass only because a terminated server waits
    // until the next regular save.
    std::vector<std::string> flags = {"--coordinator_timeout=30s",
                                      "--grace_period=10m"};
    for (const TaskId& task : {kPs0, kPs1, kWorker0, kWorker1}) {
      ASSERT_OK(cluster_->Start(task, flags));
    }
    if (keeps_checkpoints) {
      flags.push_back("--set");
      flags.push_back(
          absl::StrCat("recovery_dir=", cluster_->run_dir(), "/recovery"));
    }
    flags.insert(flags.end(), chief_flags.begin(), chief_flags.end());
    ASSERT_OK(cluster_->Start(kChief, flags));
  }

  void AwaitLine(absl::string_view text) {
    ASSERT_OK(cluster_->process(kChief).AwaitLine(text));
  }

  void AwaitLastEpoch() {
    AwaitLine(absl::StrCat("Epoch ", kEpochs, "/", kEpochs));
  }

  void Replace(std::vector<TaskId> tasks) {
    for (const TaskId& task : tasks) {
      cluster_->process(task).SendSignal(SIGKILL);
      ASSERT_OK(cluster_->process(task).AwaitEnd());
    }
    for (const TaskId& task : tasks) ASSERT_OK(cluster_->Start(task));
  }

  void ExpectAllSucceed() {
    for (const TaskId& task : {kChief, kWorker0, kWorker1, kPs0, kPs1}) {
      ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                           cluster_->process(task).AwaitEnd());
      ASSERT_EQ(end.ShellCode(), 0) << task << " wrote:\n"
                                    << cluster_->process(task).output();
    }
  }

  // Terminates a server during training and restarts it.
  void TerminateAndRestartServer() {
    AwaitLine("Epoch 20/");
    ProcessUnderTest& server = cluster_->process(kPs1);
    server.SendSignal(SIGTERM);
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, server.AwaitEnd());
    EXPECT_EQ(end.ShellCode(), 128 + SIGTERM);
    EXPECT_THAT(server.output(),
                HasSubstr("waiting for the coordinator to save"));
    AwaitLine("is about to exit");
    ASSERT_OK(cluster_->Start(kPs1));
  }

  // The save keeps all steps before it, and the server exits right after it, so
  // far fewer than twenty epochs are undone.
  void ExpectFewStepsUndone() {
    AwaitLine("training was rolled back to checkpoint");
    AwaitLine("training is rolled back from epoch");
    const std::string output = cluster_->process(kChief).output();
    EXPECT_GE(UndoneStepCount(output), 0) << output;
    EXPECT_LT(UndoneStepCount(output), 5 * kStepsPerEpoch) << output;
    AwaitLastEpoch();
    ExpectAllSucceed();
  }

  const std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_F(LostServerTest, ResumesFromTheNewestCheckpoint) {
  Train(kEpochs, /*keeps_checkpoints=*/true);
  AwaitLine("Epoch 20/");
  Replace({kPs1});
  AwaitLine("training is rolled back from epoch");
  AwaitLastEpoch();
  ExpectAllSucceed();
  EXPECT_THAT(cluster_->process(kChief).output(),
              HasSubstr("training was rolled back to checkpoint"));
}

TEST_F(LostServerTest, SavesATerminatedServerFirst) {
  // The regular interval is too long to cause the save.
  Train(kEpochs, /*keeps_checkpoints=*/true,
        {"--set", "recovery_interval_seconds=3600"});
  TerminateAndRestartServer();
  ExpectFewStepsUndone();
}

TEST_F(LostServerTest, BacksUpForATerminatedServer) {
  cluster_->set_job("tests/faults/backed_up_digits.job");
  Train(kEpochs, /*keeps_checkpoints=*/false);
  TerminateAndRestartServer();
  ExpectFewStepsUndone();
}

TEST_F(LostServerTest, ATerminatedServerWithoutCheckpointsEndsImmediately) {
  Train(kEpochs, /*keeps_checkpoints=*/false);
  AwaitLine("Epoch 3/");
  cluster_->process(kPs1).SendSignal(SIGTERM);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                       cluster_->process(kPs1).AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 128 + SIGTERM);
  ASSERT_OK(cluster_->Start(kPs1));
  AwaitLine("to epoch 1, step 0");
  AwaitLastEpoch();
  ExpectAllSucceed();
}

TEST_F(LostServerTest, RestartsFromTheInitialValuesWithoutACheckpoint) {
  Train(kEpochs, /*keeps_checkpoints=*/false);
  AwaitLine("Epoch 10/");
  Replace({kPs0});
  AwaitLine("to epoch 1, step 0");
  AwaitLastEpoch();
  ExpectAllSucceed();
}

TEST_F(LostServerTest, RecoversTwoServersAndAWorkerAndOneServerAgain) {
  Train(kEpochs, /*keeps_checkpoints=*/true);
  AwaitLine("Epoch 15/");
  Replace({kPs0, kPs1, kWorker0});
  AwaitLine("training is rolled back from epoch");
  Replace({kPs1});
  AwaitLine("training is rolled back from epoch");
  AwaitLastEpoch();
  ExpectAllSucceed();
}

TEST_F(LostServerTest, NamesTheServerItWaitsFor) {
  Train(100000, /*keeps_checkpoints=*/true);
  AwaitLine("Epoch 3/");
  cluster_->process(kPs1).SendSignal(SIGKILL);
  ASSERT_OK(cluster_->process(kPs1).AwaitEnd());
  AwaitLine("waiting for a parameter server to reconnect");
  ASSERT_OK(cluster_->Start(kPs1));
  AwaitLine("training is rolled back from epoch");
  cluster_->process(kChief).SendSignal(SIGTERM);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                       cluster_->process(kChief).AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 128 + SIGTERM);
}

TEST_F(LostServerTest, ASignalMeanwhileNamesTheServerAndTheCheckpoint) {
  for (const bool keeps_checkpoints : {true, false}) {
    const std::string recovery = cluster_->run_dir() + "/recovery/";
    Train(100000, keeps_checkpoints, {"--grace_period=4s"});
    int epoch = 2;
    do {
      AwaitLine(absl::StrCat("Epoch ", ++epoch, "/"));
    } while (keeps_checkpoints &&
             !std::filesystem::exists(recovery + "checkpoint"));
    cluster_->process(kPs1).SendSignal(SIGKILL);
    ASSERT_OK(cluster_->process(kPs1).AwaitEnd());
    AwaitLine("waiting for a parameter server to reconnect");
    ProcessUnderTest& chief = cluster_->process(kChief);
    chief.SendSignal(SIGTERM);
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, chief.AwaitEnd());
    EXPECT_EQ(end.ShellCode(), 128 + SIGTERM);
    EXPECT_THAT(
        chief.output(),
        testing::AllOf(
            HasSubstr("; the weights are not saved; started again, the job "
                      "begins from the start"),
            HasSubstr("the newest steps could not be saved, because ps 1 ("),
            HasSubstr(" is lost, with the variables there; "),
            HasSubstr(keeps_checkpoints
                          ? absl::StrCat("the newest checkpoint is ", recovery)
                          : "this run has written no checkpoint")));
    for (const TaskId& task : {kPs0, kWorker0, kWorker1}) {
      ASSERT_OK_AND_ASSIGN(const ProcessEnd other,
                           cluster_->process(task).AwaitEnd());
      EXPECT_EQ(other.ShellCode(), 138) << task;
    }
  }
}

}  // namespace
}  // namespace muster
