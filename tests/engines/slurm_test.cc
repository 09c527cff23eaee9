// Jobs of `launch --slurm` in a real Slurm with four nodes. Their weights equal
// those of `launch` on one machine, and they resume after losses.
#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cluster/process_under_test.h"
#include "tests/engines/slurm_under_test.h"
#include "tests/faults/network_namespaces.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Set by main().
absl::Status available;
SlurmUnderTest* slurm = nullptr;

const ProcessUnderTest::Environment kOneThread = {{"MUSTER_THREADS", "1"}};

std::string Root() { return std::filesystem::current_path().string(); }

class SlurmTest : public testing::Test {
 protected:
  SlurmTest()
      : folder_(absl::StrCat(
            testing::TempDir(), "/",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(folder_);
  }
  void SetUp() override {
    if (!available.ok()) GTEST_SKIP() << available;
  }

  std::vector<std::string> LaunchCommand(
      const std::vector<std::string>& flags) {
    std::vector<std::string> command = {Root() + "/deploy/launch/launch"};
    command.insert(command.end(), flags.begin(), flags.end());
    return command;
  }

  // Writes the batch script of `launch --slurm` with these flags.
  void WriteScript(std::vector<std::string> flags,
                   const std::string& run = "run") {
    flags.insert(flags.end(), {"--slurm", "--run_dir=" + folder_ + "/" + run});
    ASSERT_OK_AND_ASSIGN(const std::string script,
                         slurm->Run(LaunchCommand(flags)));
    std::ofstream(folder_ + "/job.sbatch") << absl::StrReplaceAll(
        script, {{"\nset -euo",
                  "\ntrap 'echo \"the script ended with $?\"' EXIT"
                  "\nset -euo"}});
  }

  // Submits the script, with its tasks on all nodes, and follows its log.
  // Returns the id of the job.
  absl::StatusOr<std::string> Submit(const std::string& log = "log") {
    const std::string path = absl::StrCat(folder_, "/", log);
    ASSIGN_OR_RETURN(const std::string id,
                     slurm->Run({"sbatch", "--parsable",
                                 absl::StrCat("--nodes=", slurm->node_count()),
                                 "--output=" + path, folder_ + "/job.sbatch"},
                                kOneThread));
    ASSIGN_OR_RETURN(
        log_, ProcessUnderTest::Start(
                  {"tail", "--follow=name", "--retry", "--lines=+1", path}));
    return std::string(absl::StripAsciiWhitespace(id));
  }

  // Waits until the script ends. Returns its exit status.
  int AwaitScript() {
    const absl::StatusOr<std::string> line =
        log_->AwaitLine("the script ended with ");
    EXPECT_OK(line);
    int status = -1;
    if (line.ok()) {
      EXPECT_TRUE(absl::SimpleAtoi(line->substr(line->rfind(' ')), &status));
    }
    return status;
  }

  std::string Log() const {
    std::ifstream file(folder_ + "/log");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Kills the task of this rank, as a failing machine would.
  absl::Status KillTask(int rank) {
    const std::string own_rank = absl::StrCat("SLURM_PROCID=", rank);
    const std::string own_run = "MUSTER_RUN_DIR=" + folder_ + "/run";
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      pid_t pid = 0;
      if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
      const std::string executable =
          std::filesystem::read_symlink(entry.path() / "exe", error).filename();
      if (executable != "worker") continue;
      std::ifstream file(entry.path() / "environ", std::ios::binary);
      const std::string text((std::istreambuf_iterator<char>(file)), {});
      const std::vector<std::string> variables = absl::StrSplit(text, '\0');
      const auto has = [&variables](const std::string& variable) {
        return std::count(variables.begin(), variables.end(), variable) > 0;
      };
      if (!has(own_rank) || !has(own_run)) continue;
      return kill(pid, SIGKILL) == 0 ? absl::OkStatus()
                                     : absl::ErrnoToStatus(errno, "kill");
    }
    return absl::NotFoundError(absl::StrCat("no worker of rank ", rank));
  }

  // Returns the hash of the weights in the summary of a run.
  std::string Weights(const std::string& run_dir) {
    std::ifstream file(run_dir + "/summary.json");
    const nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
    EXPECT_TRUE(json.is_object()) << run_dir << "\n" << Log();
    return json.is_object() ? json.value("weights_sha256", "") : "";
  }
  std::string WeightsOfLaunch(std::vector<std::string> flags) {
    const std::string run_dir = folder_ + "/launched";
    flags.push_back("--run_dir=" + run_dir);
    const absl::StatusOr<std::string> output =
        slurm->Run(LaunchCommand(flags), kOneThread);
    EXPECT_OK(output);
    return Weights(run_dir);
  }

  const std::string folder_;
  std::unique_ptr<ProcessUnderTest> log_;
};

const std::string& SynchronousJob() {
  static const std::string* const job =
      new std::string(Root() + "/tests/engines/synchronous.job");
  return *job;
}

TEST_F(SlurmTest, SynchronousWeightsEqualThoseOfLaunch) {
  const std::vector<std::string> flags = {
      "--workers=4", "--ps=0", "--job=" + SynchronousJob(), "--data_root=/"};
  std::vector<std::string> on_slurm = flags;
  on_slurm.push_back("--insecure");
  ASSERT_NO_FATAL_FAILURE(WriteScript(on_slurm));
  ASSERT_OK(Submit());
  EXPECT_EQ(AwaitScript(), 0) << Log();
  const std::string weights = Weights(folder_ + "/run");
  EXPECT_NE(weights, "");
  EXPECT_EQ(weights, WeightsOfLaunch(flags));
}

TEST_F(SlurmTest, ServerWeightsEqualThoseOfLaunchAlsoWithTls) {
  const std::vector<std::string> flags = {
      "--workers=1",
      "--ps=2",
      "--tls=auto",
      "--data_root=/",
      "--job=" + Root() + "/examples/digits/digits.job",
      "--set",
      "epochs=3",
      "--set",
      "data_dir=" + Root() + "/examples/data/digits"};
  ASSERT_NO_FATAL_FAILURE(WriteScript(flags));
  ASSERT_OK(Submit());
  EXPECT_EQ(AwaitScript(), 0) << Log();
  EXPECT_THAT(Log(), Not(HasSubstr("--insecure")));
  const std::string weights = Weights(folder_ + "/run");
  EXPECT_NE(weights, "");
  EXPECT_EQ(weights, WeightsOfLaunch(flags));
}

TEST_F(SlurmTest, AKilledRankComesBackWithAllOthers) {
  // Long enough that the job still runs when the test reads of the third epoch.
  const std::string epochs = "epochs=200";
  ASSERT_NO_FATAL_FAILURE(
      WriteScript({"--workers=4", "--ps=0", "--job=" + SynchronousJob(),
                   "--data_root=/", "--insecure", "--set", epochs}));
  ASSERT_OK(Submit());
  ASSERT_OK(log_->AwaitLine("Epoch 3/"));
  ASSERT_OK(KillTask(2));
  ASSERT_OK(log_->AwaitLine("attempt 0: srun ended with 137"));
  EXPECT_EQ(AwaitScript(), 0) << Log();
  EXPECT_THAT(Log(), HasSubstr("Epoch 200/200"));
  EXPECT_EQ(
      Weights(folder_ + "/run"),
      WeightsOfLaunch({"--workers=4", "--ps=0", "--job=" + SynchronousJob(),
                       "--data_root=/", "--set", epochs}));
}

TEST_F(SlurmTest, ScancelWithTermSavesAndEndsAll) {
  ASSERT_NO_FATAL_FAILURE(
      WriteScript({"--workers=4", "--ps=0", "--job=" + SynchronousJob(),
                   "--data_root=/", "--insecure", "--set", "epochs=100000"}));
  ASSERT_OK_AND_ASSIGN(const std::string id, Submit());
  ASSERT_OK(log_->AwaitLine("Epoch 3/"));
  ASSERT_OK(slurm->Run({"scancel", "--signal=TERM", id}).status());
  EXPECT_EQ(AwaitScript(), 143) << Log();
  EXPECT_THAT(Log(), Not(HasSubstr("attempt 0")));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/run/backup/checkpoint"));
}

TEST_F(SlurmTest, TwoJobsOnTheSameNodesHavePortsOfTheirOwn) {
  const std::vector<std::string> flags = {"--workers=4", "--ps=0",
                                          "--job=" + SynchronousJob(),
                                          "--data_root=/", "--insecure"};
  std::vector<std::string> endless = flags;
  endless.insert(endless.end(), {"--set", "epochs=100000"});
  ASSERT_NO_FATAL_FAILURE(WriteScript(endless, "first"));
  ASSERT_OK_AND_ASSIGN(const std::string first, Submit("first.log"));
  const std::unique_ptr<ProcessUnderTest> first_log = std::move(log_);
  ASSERT_OK(first_log->AwaitLine("Epoch 3/"));
  ASSERT_NO_FATAL_FAILURE(WriteScript(flags));
  ASSERT_OK(Submit());
  EXPECT_EQ(AwaitScript(), 0) << Log();
  // The first job is not affected.
  ASSERT_OK(slurm->Run({"scancel", "--signal=TERM", first}).status());
  ASSERT_OK(first_log->AwaitLine("the script ended with 143"));
  EXPECT_THAT(first_log->output(), Not(HasSubstr("attempt 0")));
}

TEST_F(SlurmTest, APreemptedJobSavesIsQueuedAgainAndResumes) {
  ASSERT_NO_FATAL_FAILURE(
      WriteScript({"--workers=4", "--ps=0", "--job=" + SynchronousJob(),
                   "--data_root=/", "--insecure", "--set", "epochs=100000"}));
  ASSERT_OK_AND_ASSIGN(const std::string id, Submit());
  ASSERT_OK(log_->AwaitLine("Epoch 3/"));
  ASSERT_OK(slurm
                ->Run({"srun", "--partition=urgent", "--exclusive",
                       absl::StrCat("--nodes=", slurm->node_count()), "true"})
                .status());
  ASSERT_OK(log_->AwaitLine("the job is queued again"));
  ASSERT_OK(log_->AwaitLine("Resuming in epoch"));
  // A signal to the script must have the same effect.
  ASSERT_OK(slurm->Run({"scancel", "--batch", "--signal=USR1", id}).status());
  ASSERT_OK(log_->AwaitLine("the job is queued again"));
  ASSERT_OK(log_->AwaitLine("Resuming in epoch"));
  ASSERT_OK(slurm->Run({"scancel", "--signal=TERM", id}).status());
  EXPECT_EQ(AwaitScript(), 143) << Log();
}

TEST_F(SlurmTest, AnArrayIsRefusedWithTheReason) {
  ASSERT_NO_FATAL_FAILURE(
      WriteScript({"--workers=1", "--ps=0", "--job=" + SynchronousJob(),
                   "--data_root=/", "--insecure"}));
  ASSERT_OK(
      slurm
          ->Run({"sbatch", "--array=0-1", "--nodes=1",
                 "--output=" + folder_ + "/log-%a", folder_ + "/job.sbatch"})
          .status());
  for (const char* element : {"0", "1"}) {
    ASSERT_OK_AND_ASSIGN(
        const auto log,
        ProcessUnderTest::Start({"tail", "--follow=name", "--retry",
                                 "--lines=+1", folder_ + "/log-" + element}));
    EXPECT_OK(log->AwaitLine("sbatch --array: every element would train"));
    EXPECT_OK(log->AwaitLine("the script ended with 2"));
  }
}

TEST_F(SlurmTest, TooFewTasksAreReportedByEveryTask) {
  ASSERT_OK_AND_ASSIGN(
      const auto srun,
      slurm->Start({"srun", "--nodes=2", "--ntasks=2",
                    Root() + "/deploy/launch/launch", "--task",
                    "--cluster_tasks=worker=3", "--check_config"}));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, srun->AwaitEnd());
  EXPECT_EQ(end.ShellCode(), 2);
  EXPECT_THAT(srun->output(),
              HasSubstr("SLURM_STEP_NUM_TASKS is 2, but "
                        "--cluster_tasks=worker=3 has 3 tasks"));
}

TEST_F(SlurmTest, CheckConfigPrintsWhatWasDerived) {
  ASSERT_OK_AND_ASSIGN(
      const std::string output,
      // Without this flag, other nodes could be used while earlier jobs are
      // still ending.
      slurm->Run({"srun", "--nodelist=node[0-1]", "--ntasks=3", "--label",
                  Root() + "/deploy/launch/launch", "--task", "--insecure",
                  "--port_base=8888", "--cluster_tasks=chief=1,ps=1,worker=1",
                  "--check_config"}));
  EXPECT_THAT(output,
              AllOf(HasSubstr("0: chief        node0:8888  <- this task"),
                    HasSubstr("1: ps 0         node0:8889  <- this task"),
                    HasSubstr("2: worker 0     node1:8888  <- this task")));
}

// fit_on_slurm.py has the assertions.
TEST_F(SlurmTest, MusterFitTrainsOnSlurm) {
  const char* const python = std::getenv("MUSTER_KERAS_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "MUSTER_KERAS_PYTHON is not set";
  EXPECT_OK(slurm->Run({python, "-B", "-W", "ignore",
                        Root() + "/tests/engines/fit_on_slurm.py", folder_},
                       {{"MUSTER_BIN", Root()},
                        {"MUSTER_THREADS", "1"},
                        {"PYTHONPATH", Root() + "/deploy/python"}}));
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  muster::available = muster::SlurmUnderTest::CheckAvailable();
  std::unique_ptr<muster::NetworkNamespaces> network;
  std::unique_ptr<muster::SlurmUnderTest> slurm;
  if (muster::available.ok()) {
    muster::available = muster::NetworkNamespaces::Enter();
  }
  if (muster::available.ok()) {
    auto created = muster::NetworkNamespaces::Create(5);
    if (!created.ok()) {
      std::cerr << created.status() << "\n";
      return 1;
    }
    network = *std::move(created);
    auto started = muster::SlurmUnderTest::Create(network.get());
    if (!started.ok()) {
      std::cerr << started.status() << "\n";
      return 1;
    }
    slurm = *std::move(started);
    muster::slurm = slurm.get();
  }
  return RUN_ALL_TESTS();
}
