// Synchronous workers, started separately without a launcher.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/port_reservation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};

// So many epochs that training never ends by itself.
constexpr int kManyEpochs = 1'000'000;

class SynchronousTest : public testing::Test {
 protected:
  SynchronousTest()
      : cluster_(*ClusterUnderTest::Create(
            testing::UnitTest::GetInstance()->current_test_info()->name(),
            /*worker_count=*/2, /*ps_count=*/0)) {}

  ProcessUnderTest& process(TaskId task) { return cluster_->process(task); }
  std::string address(TaskId task) {
    return *cluster_->cluster().Address(task);
  }

  void ExpectEndsWith(TaskId task, int exit_code) {
    const absl::StatusOr<ProcessEnd> end = process(task).AwaitEnd();
    ASSERT_OK(end);
    EXPECT_EQ(end->ShellCode(), exit_code) << task << " wrote:\n"
                                           << process(task).output();
  }

  nlohmann::json Summary() {
    std::ifstream file(cluster_->run_dir() + "/summary.json");
    return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  }

  // Starts both workers and waits until they are training.
  void StartBothWorkers() {
    cluster_->set_epochs(kManyEpochs);
    ASSERT_OK(cluster_->StartAll());
    ASSERT_OK(process(kWorker0).AwaitLine("Epoch 3/"));
  }

  const std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_F(SynchronousTest, TwoWorkersTrainAndTheFirstWritesTheResults) {
  ASSERT_OK(cluster_->StartAll());
  ExpectEndsWith(kWorker0, 0);
  ExpectEndsWith(kWorker1, 0);
  EXPECT_THAT(process(kWorker0).output(),
              HasSubstr("2 workers, 2 replicas; RING over shared memory"));
  EXPECT_THAT(process(kWorker0).output(), HasSubstr("summary.json"));
  EXPECT_THAT(process(kWorker1).output(), Not(HasSubstr("summary.json")));
  EXPECT_THAT(process(kWorker0).output(), HasSubstr("Epoch 30/30"));
  EXPECT_THAT(process(kWorker1).output(), Not(HasSubstr("Epoch ")));
  const nlohmann::json summary = Summary();
  EXPECT_EQ(summary["strategy"], "multi_worker_mirrored");
  EXPECT_GE(summary["final"]["test_sparse_categorical_accuracy"], 0.96);
}

TEST_F(SynchronousTest, TrainsTheSameOverEveryLane) {
  cluster_->set_epochs(5);
  const std::vector<std::vector<std::string>> lanes = {
      {}, {"--noshared_memory"}, {"--noshared_memory", "--noraw_sockets"}};
  const char* const names[] = {"shared memory", "raw", "gRPC"};
  double loss = 0;
  const std::string run_dir = cluster_->run_dir();
  for (size_t i = 0; i < lanes.size(); ++i) {
    cluster_->set_run_dir(absl::StrCat(run_dir, "_", i));
    for (const TaskId& task : {kWorker1, kWorker0}) {
      ASSERT_OK(cluster_->Start(task, lanes[i]));
    }
    ExpectEndsWith(kWorker0, 0);
    ExpectEndsWith(kWorker1, 0);
    EXPECT_THAT(process(kWorker0).output(), HasSubstr(names[i]));
    const double final_loss = Summary()["final"]["loss"];
    if (i == 0) loss = final_loss;
    EXPECT_NEAR(final_loss, loss, 1e-4) << names[i];
  }
}

TEST_F(SynchronousTest, NamesTheWorkerItWaitsFor) {
  cluster_->set_epochs(2);
  ASSERT_OK(cluster_->Start(kWorker0));
  EXPECT_OK(process(kWorker0).AwaitLine(
      absl::StrCat("waiting for worker 1 (", address(kWorker1))));
  ASSERT_OK(cluster_->Start(kWorker1));
  ExpectEndsWith(kWorker0, 0);
  ExpectEndsWith(kWorker1, 0);
}

TEST_F(SynchronousTest, NamesAMissingWorkerAtTheDeadline) {
  ASSERT_OK(cluster_->Start(kWorker0, {"--startup_timeout=300ms"}));
  ExpectEndsWith(kWorker0, 138);
  EXPECT_THAT(process(kWorker0).output(),
              HasSubstr(absl::StrCat("worker 1 (", address(kWorker1))));
}

TEST_F(SynchronousTest, AFolderThatCannotBeWrittenEndsAllWorkersAtOnce) {
  const std::string file = testing::TempDir() + "/is_a_file";
  std::ofstream(file) << "no folder";
  ASSERT_OK(cluster_->Start(kWorker1));
  ASSERT_OK(cluster_->Start(kWorker0, {absl::StrCat("--run_dir=", file)}));
  for (const TaskId& task : {kWorker0, kWorker1}) {
    ExpectEndsWith(task, 2);
    EXPECT_THAT(process(task).output(),
                HasSubstr(absl::StrCat("cannot make the folder ", file)));
  }
}

TEST_F(SynchronousTest, DataThatOneWorkerLacksEndAllWorkersAtOnce) {
  ASSERT_OK(cluster_->Start(kWorker0));
  ASSERT_OK(cluster_->Start(kWorker1, {"--set", "data_dir=/no/such/folder"}));
  for (const TaskId& task : {kWorker0, kWorker1}) {
    ExpectEndsWith(task, 1);
    EXPECT_THAT(process(task).output(), HasSubstr("/no/such/folder"));
  }
}

TEST_F(SynchronousTest, AProgramThatFailsBeforeItsStrategyEndsAllWorkers) {
  cluster_->set_program("tests/e2e/unready_program");
  for (const TaskId& failing : {kWorker0, kWorker1}) {
    ASSERT_OK(cluster_->Start(failing, {"--set", "data=/no/such.csv"}));
    ASSERT_OK(cluster_->Start(failing == kWorker0 ? kWorker1 : kWorker0));
    for (const TaskId& task : {kWorker0, kWorker1}) {
      ExpectEndsWith(task, 1);
      EXPECT_THAT(process(task).output(),
                  HasSubstr("cannot read /no/such.csv"));
    }
  }
}

TEST_F(SynchronousTest, WithoutARunDirAllLogsStandBesideTheResults) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "without_run_dir";
  fs::create_directory(folder);
  const std::string job = fs::absolute("examples/digits/digits.job").string();
  const std::string worker = fs::absolute("worker/worker").string();
  std::vector<std::unique_ptr<ProcessUnderTest>> workers;
  for (const TaskId& task : {kWorker0, kWorker1}) {
    ASSERT_OK_AND_ASSIGN(
        workers.emplace_back(),
        ProcessUnderTest::Start(
            {"env", "-C", folder.string(), worker, absl::StrCat("--job=", job),
             "--threads=1", "--set", "epochs=2"},
            {{"TF_CONFIG", cluster_->TfConfig(task)}}));
  }
  for (const auto& started : workers) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, started->AwaitEnd());
    EXPECT_EQ(end.ShellCode(), 0) << started->output();
  }
  std::vector<fs::path> runs;
  for (const auto& run : fs::directory_iterator(folder / "runs")) {
    runs.push_back(run.path());
  }
  ASSERT_EQ(runs.size(), 1u);
  for (const char* name :
       {"summary.json", "logs/worker-0.log", "logs/worker-1.log"}) {
    EXPECT_TRUE(fs::exists(runs[0] / name)) << name;
  }
  EXPECT_THAT(
      workers[1]->output(),
      HasSubstr(absl::StrCat("logs of all tasks are in ", runs[0].string())));
}

TEST_F(SynchronousTest, RejectsTwoWorkersWithOneIndex) {
  ASSERT_OK(cluster_->Start(kWorker0, {"--startup_timeout=20s"}));
  ASSERT_OK(process(kWorker0).AwaitLine("waiting for worker 1"));
  const auto second = ProcessUnderTest::Start(
      {"worker/worker", "--job=examples/digits/digits.job",
       absl::StrCat("--run_dir=", cluster_->run_dir(), "_of_the_second")},
      {{"TF_CONFIG", cluster_->TfConfig(kWorker0)}});
  ASSERT_OK(second);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, (*second)->AwaitEnd());
  EXPECT_NE(end.ShellCode(), 0) << (*second)->output();
  EXPECT_THAT((*second)->output(), HasSubstr(address(kWorker0)));
}

TEST_F(SynchronousTest, RejectsAWorkerOfAnotherCluster) {
  ASSERT_OK_AND_ASSIGN(const auto port, PortReservation::Create());
  const std::string other = absl::StrReplaceAll(
      cluster_->TfConfig(kWorker1),
      {{address(kWorker0), absl::StrCat("localhost:", port->port())}});
  ASSERT_OK(cluster_->Start(kWorker0, {"--startup_timeout=20s"}));
  // Worker 1 connects to no address in the cluster of worker 0; worker 0
  // connects to it.
  ASSERT_OK(cluster_->Start(kWorker1, {"--startup_timeout=20s",
                                       absl::StrCat("--tf_config=", other)}));
  ExpectEndsWith(kWorker0, 2);
  EXPECT_THAT(process(kWorker0).output(), HasSubstr("disagree"));
  EXPECT_THAT(process(kWorker0).output(),
              HasSubstr(absl::StrCat("localhost:", port->port())));
}

TEST_F(SynchronousTest, RejectsAWorkerWithAnotherJobAndShowsTheDifference) {
  ASSERT_OK(cluster_->Start(kWorker0, {"--startup_timeout=20s"}));
  ASSERT_OK(cluster_->Start(kWorker1,
                            {"--startup_timeout=20s", "--set", "epochs=7"}));
  for (const TaskId& task : {kWorker0, kWorker1}) {
    ExpectEndsWith(task, 2);
    EXPECT_THAT(process(task).output(), HasSubstr("epochs: 7"));
    EXPECT_THAT(process(task).output(), HasSubstr("epochs: 30"));
  }
}

// Writes the digits job with two additional lines at the top.
std::string WriteCommented(
    const std::vector<std::pair<std::string, std::string>>& changes) {
  std::ifstream file("examples/digits/digits.job");
  const std::string text((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  const std::string path = testing::TempDir() + "/commented.job";
  std::ofstream(path) << "# Another comment.\n\n"
                      << absl::StrReplaceAll(text, changes);
  return path;
}

TEST_F(SynchronousTest, TheSameJobWithOtherCommentsTrainsTogether) {
  cluster_->set_epochs(2);
  ASSERT_OK(cluster_->Start(kWorker0, {"--startup_timeout=20s"}));
  cluster_->set_job(WriteCommented({{"batch_size: 32", "batch_size:  32"}}));
  ASSERT_OK(cluster_->Start(kWorker1, {"--startup_timeout=20s", "--set",
                                       "data_dir=examples/data/digits"}));
  ExpectEndsWith(kWorker0, 0);
  ExpectEndsWith(kWorker1, 0);
}

TEST_F(SynchronousTest, ADifferenceNamesTheLineOfTheWorkersOwnFile) {
  ASSERT_OK(cluster_->Start(kWorker0, {"--startup_timeout=20s"}));
  cluster_->set_job(WriteCommented({{"batch_size: 32", "batch_size: 16"}}));
  ASSERT_OK(cluster_->Start(kWorker1, {"--startup_timeout=20s", "--set",
                                       "data_dir=examples/data/digits"}));
  ExpectEndsWith(kWorker0, 2);
  ExpectEndsWith(kWorker1, 2);
  EXPECT_THAT(process(kWorker0).output(),
              HasSubstr("job file, line 27, is \"batch_size: 16\" there and "
                        "\"batch_size: 32\" here"));
  EXPECT_THAT(process(kWorker1).output(),
              HasSubstr("job file, line 29, is \"batch_size: 32\" there and "
                        "\"batch_size: 16\" here"));
}

TEST_F(SynchronousTest, SurvivorsOfAKilledWorkerAskToBeRestarted) {
  StartBothWorkers();
  process(kWorker1).SendSignal(SIGKILL);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process(kWorker0).AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 138) << process(kWorker0).output();
  EXPECT_THAT(process(kWorker0).output(),
              testing::AllOf(HasSubstr("worker 1"),
                             HasSubstr("; started again, the job begins from "
                                       "the start; with a backup_and_restore "
                                       "callback in the job file")));
}

TEST_F(SynchronousTest, DetectsAStoppedWorker) {
  StartBothWorkers();
  process(kWorker1).SendSignal(SIGSTOP);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process(kWorker0).AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 138) << process(kWorker0).output();
  EXPECT_THAT(process(kWorker0).output(), HasSubstr("worker 1"));
  // After it is continued, worker 1 detects that the group has ended.
  process(kWorker1).SendSignal(SIGCONT);
  ExpectEndsWith(kWorker1, 138);
}

TEST_F(SynchronousTest, SurvivorsOfATerminatedWorkerAskToBeRestarted) {
  cluster_->set_job(WriteCommented({{"seed: 1", "save_final_weights: false"}}));
  cluster_->set_epochs(kManyEpochs);
  for (const TaskId& task : {kWorker0, kWorker1}) {
    ASSERT_OK(
        cluster_->Start(task, {"--set", "data_dir=examples/data/digits"}));
  }
  ASSERT_OK(process(kWorker0).AwaitLine("Epoch 3/"));
  process(kWorker1).SendSignal(SIGTERM);
  ExpectEndsWith(kWorker1, 143);
  ExpectEndsWith(kWorker0, 138);
  EXPECT_FALSE(
      std::filesystem::exists(cluster_->run_dir() + "/final_weights.index"));
}

TEST_F(SynchronousTest, TheWeightsAreSavedWhenAWorkerIsTerminated) {
  StartBothWorkers();
  process(kWorker1).SendSignal(SIGTERM);
  ExpectEndsWith(kWorker1, 143);
  ExpectEndsWith(kWorker0, 143);
  const std::string weights = cluster_->run_dir() + "/final_weights";
  EXPECT_THAT(process(kWorker0).output(),
              HasSubstr(absl::StrCat("the weights are in ", weights)));
  EXPECT_TRUE(std::filesystem::exists(weights + ".index"));
}

TEST_F(SynchronousTest, LaunchRunsAnyNumberOfWorkers) {
  for (const int workers : {1, 3}) {
    const std::string run_dir =
        absl::StrCat(testing::TempDir(), "/launched-", workers);
    ASSERT_OK_AND_ASSIGN(
        const auto launch,
        ProcessUnderTest::Start(
            {"deploy/launch/launch", absl::StrCat("--workers=", workers),
             "--ps=0", "--cores=1", "--job=examples/digits/digits.job",
             absl::StrCat("--run_dir=", run_dir)}));
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, launch->AwaitEnd());
    EXPECT_EQ(end.ShellCode(), 0) << launch->output();
    std::ifstream file(run_dir + "/summary.json");
    const nlohmann::json summary = nlohmann::json::parse(file);
    EXPECT_GE(summary["final"]["test_sparse_categorical_accuracy"], 0.96);
  }
}

}  // namespace
}  // namespace muster
