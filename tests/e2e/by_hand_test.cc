// Starts the executables separately, without a launcher.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs0 = {TaskType::kPs, 0};
constexpr TaskId kPs1 = {TaskType::kPs, 1};

constexpr absl::string_view kExecutables[] = {"coordinator/coordinator",
                                              "worker/worker", "ps/ps"};

class ByHandTest : public testing::Test {
 protected:
  ByHandTest()
      : cluster_(*ClusterUnderTest::Create(
            testing::UnitTest::GetInstance()->current_test_info()->name(), 2,
            2)) {}

  void ExpectEndsWith(TaskId task, int exit_code) {
    const absl::StatusOr<ProcessEnd> end = cluster_->process(task).AwaitEnd();
    ASSERT_OK(end);
    EXPECT_EQ(end->ShellCode(), exit_code) << task << " wrote:\n"
                                           << cluster_->process(task).output();
  }

  // Returns when all tasks except the chief listen. A chief whose start fails
  // tells the connected tasks within 10 s.
  void StartOthersThanChief() {
    const std::vector<TaskId> tasks = cluster_->cluster().Members();
    for (const TaskId& task : tasks) {
      if (task == kChief) continue;
      ASSERT_OK(cluster_->Start(task));
    }
    for (const TaskId& task : tasks) {
      if (task == kChief) continue;
      ASSERT_OK(cluster_->process(task).AwaitLine("incarnation"));
    }
  }

  // Returns the error message with which `executable` rejects its
  // configuration.
  std::string RejectionMessage(absl::string_view executable,
                               const std::string& tf_config,
                               std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), std::string(executable));
    flags.push_back("--job=examples/digits/digits.job");
    const auto process =
        ProcessUnderTest::Start(flags, {{"TF_CONFIG", tf_config}});
    EXPECT_OK(process);
    if (!process.ok()) return "";
    const absl::StatusOr<ProcessEnd> end = (*process)->AwaitEnd();
    EXPECT_OK(end);
    if (end.ok()) {
      EXPECT_EQ(end->ShellCode(), 2) << executable << " " << tf_config << "\n"
                                     << (*process)->output();
    }
    return (*process)->output();
  }

  const std::unique_ptr<ClusterUnderTest> cluster_;
};

TEST_F(ByHandTest, TrainsAndAllProcessesEnd) {
  ASSERT_OK(cluster_->StartAll());
  for (const TaskId& task : cluster_->cluster().Members()) {
    ExpectEndsWith(task, 0);
  }
  std::ifstream file(cluster_->run_dir() + "/summary.json");
  const nlohmann::json summary = nlohmann::json::parse(file);
  EXPECT_GE(summary["final"]["sparse_categorical_accuracy"], 0.96)
      << summary["final"];
}

TEST_F(ByHandTest, EveryTaskWritesItsLogBesideTheResults) {
  cluster_->set_epochs(2);
  ASSERT_OK(cluster_->Start(kPs1, {"--nolog_file"}));
  ASSERT_OK(cluster_->StartAll());
  for (const TaskId& task : cluster_->cluster().Members()) {
    ExpectEndsWith(task, 0);
  }
  for (const std::string name : {"chief", "worker-0", "worker-1", "ps-0"}) {
    std::stringstream log;
    log << std::ifstream(
               absl::StrCat(cluster_->run_dir(), "/logs/", name, ".log"))
               .rdbuf();
    EXPECT_THAT(log.str(), HasSubstr("incarnation")) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(
      absl::StrCat(cluster_->run_dir(), "/logs/ps-1.log")));
}

TEST_F(ByHandTest, StartsInAnyOrderAndNamesMissingTasks) {
  cluster_->set_epochs(2);
  ASSERT_OK(cluster_->Start(kChief));
  EXPECT_OK(cluster_->process(kChief).AwaitLine(absl::StrCat(
      "waiting for worker 0 (", *cluster_->cluster().Address(kWorker0))));
  ASSERT_OK(cluster_->StartAll());
  for (const TaskId& task : cluster_->cluster().Members()) {
    ExpectEndsWith(task, 0);
  }
}

// Runs the coordinator with script(1), which gives it a terminal.
TEST_F(ByHandTest, OnATerminalTheNewestLineOfAWaitReplacesTheOneBefore) {
  for (const TaskId& task : {kPs0, kPs1, kWorker0}) {
    ASSERT_OK(cluster_->Start(task));
  }
  ASSERT_OK_AND_ASSIGN(
      const auto script,
      ProcessUnderTest::Start(
          {"/bin/sh", "-c",
           absl::StrCat("exec script -qec \"stty cols 120; exec "
                        "coordinator/coordinator --startup_timeout=11s "
                        "--job=examples/digits/digits.job --run_dir=",
                        cluster_->run_dir(), "\" /dev/null")},
          {{"TF_CONFIG", cluster_->TfConfig(kChief)}}));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, script->AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 138) << script->output();
  const std::string line = absl::StrCat("\r\x1b[Kchief: waiting for worker 1 (",
                                        *cluster_->cluster().Address(kWorker1),
                                        ": connection refused), ");
  EXPECT_THAT(script->output(),
              HasSubstr(absl::StrCat(line, "5 s", line, "10 s\r\n")));
}

TEST_F(ByHandTest, NamesMissingTasksAtTheDeadline) {
  ASSERT_OK(cluster_->Start(kChief, {"--startup_timeout=300ms"}));
  ExpectEndsWith(kChief, 138);
  for (const TaskId& task : {kWorker0, kWorker1, kPs0}) {
    EXPECT_THAT(cluster_->process(kChief).output(),
                HasSubstr(absl::StrCat(task.ToString(), " (",
                                       *cluster_->cluster().Address(task))));
  }
}

TEST_F(ByHandTest, AChiefThatGivesUpTellsTheOthersWhoIsMissing) {
  for (const TaskId& task : {kWorker0, kPs0, kPs1}) {
    ASSERT_OK(cluster_->Start(task));
  }
  ASSERT_OK(cluster_->Start(kChief, {"--startup_timeout=5s"}));
  const std::string missing =
      absl::StrCat("worker 1 (", *cluster_->cluster().Address(kWorker1));
  for (const TaskId& task : {kChief, kWorker0, kPs0, kPs1}) {
    ExpectEndsWith(task, 138);
    EXPECT_THAT(cluster_->process(task).output(), HasSubstr(missing));
  }
}

TEST_F(ByHandTest, AFolderThatCannotBeWrittenEndsAllTasksAtOnce) {
  const std::string file = testing::TempDir() + "/is_a_file";
  std::ofstream(file) << "no folder";
  ASSERT_NO_FATAL_FAILURE(StartOthersThanChief());
  ASSERT_OK(cluster_->Start(kChief, {absl::StrCat("--run_dir=", file)}));
  for (const TaskId& task : cluster_->cluster().Members()) {
    ExpectEndsWith(task, 2);
    EXPECT_THAT(cluster_->process(task).output(),
                HasSubstr(absl::StrCat("cannot make the folder ", file)));
  }
}

TEST_F(ByHandTest, AProgramThatFailsBeforeItsStrategyEndsAllTasksAtOnce) {
  cluster_->set_program("tests/e2e/unready_program");
  ASSERT_NO_FATAL_FAILURE(StartOthersThanChief());
  ASSERT_OK(cluster_->Start(kChief, {"--set", "data=/no/such.csv"}));
  for (const TaskId& task : cluster_->cluster().Members()) {
    ExpectEndsWith(task, 1);
    EXPECT_THAT(cluster_->process(task).output(),
                HasSubstr("cannot read /no/such.csv"));
  }
}

TEST_F(ByHandTest, AMistakeDoesNotEndTheJobOfAnotherChief) {
  cluster_->set_epochs(100000);
  ASSERT_OK(cluster_->StartAll());
  ASSERT_OK(cluster_->process(kChief).AwaitLine("Epoch 2/"));
  const auto first = cluster_->Release(kChief);
  const std::string file = testing::TempDir() + "/is_a_file";
  std::ofstream(file) << "no folder";
  ASSERT_OK(cluster_->Start(kChief, {absl::StrCat("--run_dir=", file)}));
  ExpectEndsWith(kChief, 2);
  EXPECT_OK(first->AwaitLine("Epoch "));
}

TEST_F(ByHandTest, OneProcessSavesItsWeightsOnASignal) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string run_dir = absl::StrCat(cluster_->run_dir(), "_", signal);
    ASSERT_OK_AND_ASSIGN(
        const auto process,
        ProcessUnderTest::Start(
            {"coordinator/coordinator", "--job=examples/digits/digits.job",
             "--set", "epochs=100000", absl::StrCat("--run_dir=", run_dir)}));
    ASSERT_OK(process->AwaitLine("Epoch 2/"));
    process->SendSignal(signal);
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process->AwaitEnd());
    EXPECT_EQ(end.ShellCode(), 128 + signal);
    EXPECT_THAT(process->output(),
                testing::AllOf(
                    HasSubstr(absl::StrCat("; the weights are in ", run_dir,
                                           "/final_weights; ")),
                    HasSubstr("backup_and_restore callback in the job file")));
    EXPECT_TRUE(std::filesystem::exists(run_dir + "/final_weights.index"));
    EXPECT_FALSE(std::filesystem::exists(run_dir + "/summary.json"));
  }
}

TEST_F(ByHandTest, AFolderWithResultsIsNotTrainedInAgain) {
  const std::string summary = cluster_->run_dir() + "/summary.json";
  for (const int exit_code : {0, 2}) {
    const auto written = exit_code == 0
                             ? std::filesystem::file_time_type()
                             : std::filesystem::last_write_time(summary);
    ASSERT_OK_AND_ASSIGN(
        const auto process,
        ProcessUnderTest::Start(
            {"coordinator/coordinator", "--job=examples/digits/digits.job",
             "--set", "epochs=1",
             absl::StrCat("--run_dir=", cluster_->run_dir())}));
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process->AwaitEnd());
    EXPECT_EQ(end.ShellCode(), exit_code) << process->output();
    if (exit_code == 0) continue;
    EXPECT_THAT(process->output(),
                HasSubstr(absl::StrCat("--run_dir=", cluster_->run_dir(),
                                       " holds the results of a run that is "
                                       "over (",
                                       summary, "); choose another folder")));
    EXPECT_EQ(std::filesystem::last_write_time(summary), written);
  }
}

TEST_F(ByHandTest, AFolderInUseIsNotTrainedIn) {
  const std::vector<std::string> arguments = {
      "coordinator/coordinator", "--job=examples/digits/digits.job", "--set",
      "epochs=100000", absl::StrCat("--run_dir=", cluster_->run_dir())};
  ASSERT_OK_AND_ASSIGN(const auto first, ProcessUnderTest::Start(arguments));
  ASSERT_OK(first->AwaitLine("Epoch 2/"));
  ASSERT_OK_AND_ASSIGN(const auto second, ProcessUnderTest::Start(arguments));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, second->AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 2);
  EXPECT_THAT(
      second->output(),
      testing::AllOf(HasSubstr(absl::StrCat("--run_dir=", cluster_->run_dir(),
                                            " is in use: pid ", first->pid(),
                                            " on host ")),
                     testing::Not(HasSubstr("Epoch 1/"))));
  EXPECT_OK(first->AwaitLine("Epoch "));
  first->SendSignal(SIGKILL);
  ASSERT_OK(first->AwaitEnd());
  ASSERT_OK_AND_ASSIGN(const auto third, ProcessUnderTest::Start(arguments));
  EXPECT_OK(third->AwaitLine("Epoch 1/"));
  EXPECT_THAT(third->output(), testing::Not(HasSubstr("waiting")));
}

TEST_F(ByHandTest, AClusterWhoseFolderIsInUseIsToldByItsChief) {
  ASSERT_OK_AND_ASSIGN(
      const auto owner,
      ProcessUnderTest::Start(
          {"coordinator/coordinator", "--job=examples/digits/digits.job",
           "--set", "epochs=100000",
           absl::StrCat("--run_dir=", cluster_->run_dir())}));
  ASSERT_OK(owner->AwaitLine("Epoch 2/"));
  ASSERT_OK(cluster_->StartAll());
  for (const TaskId& task : cluster_->cluster().Members()) {
    ExpectEndsWith(task, 138);
    EXPECT_THAT(
        cluster_->process(task).output(),
        HasSubstr(absl::StrCat("is in use: pid ", owner->pid(), " on host ")));
  }
}

TEST_F(ByHandTest, AChiefThatCannotSaveInTimeStillTellsTheOthers) {
  cluster_->set_epochs(100000);
  ASSERT_OK(cluster_->StartAll({"--grace_period=8s"}));
  ASSERT_OK(cluster_->process(kChief).AwaitLine("Epoch 2/"));
  // No step ends while both workers are suspended.
  for (const TaskId& task : {kWorker0, kWorker1}) {
    cluster_->process(task).SendSignal(SIGSTOP);
  }
  cluster_->process(kChief).SendSignal(SIGTERM);
  ExpectEndsWith(kChief, 143);
  for (const TaskId& task : {kPs0, kPs1}) {
    ExpectEndsWith(task, 138);
    EXPECT_THAT(cluster_->process(task).output(),
                HasSubstr("the coordinator has ended the job"));
  }
}

TEST_F(ByHandTest, RejectsAWorkerOfAnotherCluster) {
  const std::string other = absl::StrReplaceAll(
      cluster_->TfConfig(kWorker0),
      {{*cluster_->cluster().Address(kPs0), "localhost:1"}});
  ASSERT_OK(cluster_->Start(kWorker0, {absl::StrCat("--tf_config=", other)}));
  ASSERT_OK(cluster_->StartAll());
  ExpectEndsWith(kChief, 2);
  EXPECT_THAT(cluster_->process(kChief).output(),
              testing::AllOf(HasSubstr("disagree about the cluster: ps is "),
                             HasSubstr("\"localhost:1\"")));
}

TEST_F(ByHandTest, RejectsAServerOfAnotherCluster) {
  const std::string other = absl::StrReplaceAll(
      cluster_->TfConfig(kPs0),
      {{*cluster_->cluster().Address(kWorker1), "localhost:1"}});
  ASSERT_OK(cluster_->Start(kPs0, {absl::StrCat("--tf_config=", other)}));
  ASSERT_OK(cluster_->StartAll());
  for (const TaskId& task : cluster_->cluster().Members()) {
    ExpectEndsWith(task, 2);
  }
  EXPECT_THAT(cluster_->process(kChief).output(),
              testing::AllOf(HasSubstr("ps 0"),
                             HasSubstr("disagree about the cluster: worker is"),
                             HasSubstr("\"localhost:1\"")));
}

TEST_F(ByHandTest, WorkersAndServersTimeOutWaitingForTheCoordinator) {
  const std::string awaited =
      absl::StrCat("waiting for the coordinator (chief ",
                   *cluster_->cluster().Address(kChief), ")");
  for (const TaskId& task : {kWorker0, kPs0}) {
    ASSERT_OK(cluster_->Start(task, {"--startup_timeout=300ms"}));
  }
  for (const TaskId& task : {kWorker1, kPs1}) ASSERT_OK(cluster_->Start(task));
  for (const TaskId& task : {kWorker0, kPs0}) {
    ExpectEndsWith(task, 138);
    EXPECT_THAT(cluster_->process(task).output(),
                HasSubstr(absl::StrCat("gave up after 300ms ", awaited)));
  }
  for (const TaskId& task : {kWorker1, kPs1}) {
    EXPECT_OK(cluster_->process(task).AwaitLine(absl::StrCat(awaited, ", ")));
  }
}

TEST_F(ByHandTest, AllExecutablesEndOnSigterm) {
  cluster_->set_epochs(100000);
  // The server has ended when the chief gets SIGTERM, so the chief cannot save
  // and waits for the server to return.
  ASSERT_OK(
      cluster_->StartAll({"--coordinator_timeout=60s", "--grace_period=4s"}));
  ASSERT_OK(cluster_->process(kChief).AwaitLine("Epoch 2/"));
  for (const TaskId& task : {kWorker0, kPs0, kChief}) {
    cluster_->process(task).SendSignal(SIGTERM);
    ExpectEndsWith(task, 143);
  }
}

TEST_F(ByHandTest, CheckConfigPrintsTheClusterAndStartsNothing) {
  for (const TaskId& task : {kChief, kWorker1, kPs0}) {
    ASSERT_OK(cluster_->Start(task, {"--check_config"}));
    ExpectEndsWith(task, 0);
    EXPECT_THAT(cluster_->process(task).output(),
                HasSubstr(absl::StrCat(*cluster_->cluster().Address(task),
                                       "  <- this task")));
  }
}

// Runs the coordinator without a cluster in an empty folder with this name.
struct SingleProcessRun {
  std::filesystem::path folder;
  std::string output;
  int exit_code = -1;

  SingleProcessRun(const std::string& name, const std::string& job,
                   std::vector<std::string> flags = {})
      : folder(std::filesystem::path(testing::TempDir()) / name) {
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "t.job") << job;
    std::ofstream(folder / "t.csv") << "age,city,y\n30,Bonn,1\n40,Trier,0\n";
    std::vector<std::string> arguments = {
        "env", "-C", folder.string(),
        std::filesystem::absolute("coordinator/coordinator").string(),
        "--job=t.job"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const auto process = ProcessUnderTest::Start(arguments);
    EXPECT_OK(process);
    if (!process.ok()) return;
    const absl::StatusOr<ProcessEnd> end = (*process)->AwaitEnd();
    EXPECT_OK(end);
    if (end.ok()) exit_code = end->ShellCode();
    output = (*process)->output();
  }
};

std::string TableJob(const std::string& columns, const std::string& loss,
                     int units = 1) {
  return absl::StrCat("model { sequential { layers { dense { units: ", units,
                      " } } } }\ntrain { csv { path: \"t.csv\" label: \"y\" ",
                      columns, " } }\noptimizer { sgd {} }\nloss { ", loss,
                      " {} }\n");
}

TEST_F(ByHandTest, AColumnOfStringsIsNamedWithTheWaysOut) {
  const SingleProcessRun checked("strings_checked",
                                 TableJob("", "mean_squared_error"),
                                 {"--check_config"});
  EXPECT_EQ(checked.exit_code, 2);
  EXPECT_THAT(checked.output,
              testing::AllOf(
                  HasSubstr("train: t.csv:2:4: \"Bonn\" in column \"city\" is "
                            "not a number (float32)"),
                  HasSubstr("name those that are numbers in csv.columns"),
                  HasSubstr("string_lookup or hashing layer")));
  const SingleProcessRun trained("strings", TableJob("", "mean_squared_error"));
  EXPECT_EQ(trained.exit_code, 1);
  EXPECT_THAT(trained.output, HasSubstr("in column \"city\""));
  EXPECT_FALSE(std::filesystem::exists(trained.folder / "runs"));
  const SingleProcessRun without(
      "strings_left_out",
      TableJob("columns { name: \"age\" }", "mean_squared_error"),
      {"--check_config"});
  EXPECT_EQ(without.exit_code, 0) << without.output;
}

TEST_F(ByHandTest, AConfigurationIsCheckedWithoutTheData) {
  std::string job = TableJob("", "mean_squared_error");
  job.replace(job.find("t.csv"), 5, "/data/t.csv");
  const SingleProcessRun missing("elsewhere_missing", job, {"--check_config"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.output, HasSubstr("train: cannot open /data/t.csv"));
  const SingleProcessRun checked("elsewhere", job,
                                 {"--check_config", "--nocheck_data"});
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_THAT(checked.output,
              HasSubstr("the data and folders are not checked"));
  const SingleProcessRun trained("elsewhere_trained", job);
  EXPECT_EQ(trained.exit_code, 1) << trained.output;
}

TEST_F(ByHandTest, AnInvalidJobLeavesNoFolder) {
  const std::string job = TableJob("columns { name: \"age\" }",
                                   "categorical_crossentropy", /*units=*/2);
  const SingleProcessRun unnamed("unnamed", job);
  EXPECT_EQ(unnamed.exit_code, 1);
  EXPECT_THAT(unnamed.output,
              HasSubstr("use the loss sparse_categorical_crossentropy"));
  EXPECT_TRUE(std::filesystem::is_empty(unnamed.folder / "runs"))
      << unnamed.output;
  // A folder that --run_dir names is kept, with its log.
  const SingleProcessRun named("named", job, {"--run_dir=run"});
  EXPECT_TRUE(
      std::filesystem::exists(named.folder / "run/logs/coordinator.log"));
}

TEST_F(ByHandTest, ATaskWithoutTfConfigIsToldToExportIt) {
  for (const absl::string_view executable : kExecutables) {
    ASSERT_OK_AND_ASSIGN(const auto process,
                         ProcessUnderTest::Start({std::string(executable)}));
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process->AwaitEnd());
    EXPECT_EQ(end.ShellCode(), 2);
    EXPECT_THAT(process->output(),
                testing::AllOf(HasSubstr("TF_CONFIG is not set"),
                               HasSubstr("export ")));
  }
}

TEST_F(ByHandTest, ATraceThatCannotBeWrittenIsRefusedBeforeTraining) {
  ASSERT_OK_AND_ASSIGN(
      const auto chief,
      ProcessUnderTest::Start({"coordinator/coordinator",
                               "--job=examples/digits/digits.job",
                               absl::StrCat("--run_dir=", cluster_->run_dir()),
                               "--trace=/no/such/folder/trace.json"}));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, chief->AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 2);
  EXPECT_THAT(chief->output(),
              testing::AllOf(HasSubstr("--trace=/no/such/folder/trace.json "
                                       "cannot be written: No such file"),
                             testing::Not(HasSubstr("Epoch"))));
}

TEST_F(ByHandTest, AllExecutablesExplainHowToFixATypoInTfConfig) {
  const std::string good = cluster_->TfConfig(kWorker0);
  struct Typo {
    std::string from;
    std::string to;
    std::string words;
  };
  const Typo typos[] = {
      {"{\"cluster\"", "{cluster", "is not JSON"},
      {"\"cluster\"", "\"clutser\"", "did you mean \"cluster\"?"},
      {"\"worker\":[", "\"workers\":[", "did you mean \"worker\"?"},
      {"\"ps\":[", "\"PS\":[", "did you mean \"ps\"?"},
      {"\"task\"", "\"taks\"", "did you mean \"task\"?"},
      {"\"type\":\"worker\"", "\"type\":\"wroker\"",
       "did you mean \"worker\"?"},
      {"\"type\"", "\"typ\"", "did you mean \"type\"?"},
      {"\"index\":0", "\"idx\":0", "task has no \"index\""},
      {"\"index\":0", "\"index\":-1", "numbered from 0"},
      {"\"index\":0", "\"index\":2", "entry 2?"},
      {"\"index\":0", "\"index\":\"first\"", "write a whole number"},
      {"localhost:", "localhost;", "is not an address"},
      {*cluster_->cluster().Address(kPs0), "h0:2222",
       "localhost is a different"},
      {*cluster_->cluster().Address(kPs0),
       *cluster_->cluster().Address(kWorker0), "a separate address"},
  };
  for (const Typo& typo : typos) {
    const std::string bad = absl::StrReplaceAll(good, {{typo.from, typo.to}});
    ASSERT_NE(bad, good) << typo.from;
    for (absl::string_view executable : kExecutables) {
      EXPECT_THAT(RejectionMessage(executable, bad), HasSubstr(typo.words))
          << bad;
      EXPECT_THAT(RejectionMessage(executable, bad, {"--check_config"}),
                  HasSubstr(typo.words));
    }
  }
}

TEST_F(ByHandTest, AnExecutableRejectsTheRoleOfAnother) {
  EXPECT_THAT(RejectionMessage("ps/ps", cluster_->TfConfig(kWorker0)),
              HasSubstr("TF_CONFIG declares this task as worker 0"));
  EXPECT_THAT(RejectionMessage("worker/worker", cluster_->TfConfig(kPs0)),
              HasSubstr("TF_CONFIG declares this task as ps 0"));
  EXPECT_THAT(
      RejectionMessage("coordinator/coordinator", cluster_->TfConfig(kPs0)),
      HasSubstr("TF_CONFIG makes this task ps 0"));
}

}  // namespace
}  // namespace muster
