// Runs the script in bash, with a shell function instead of srun.
#include "deploy/launch/slurm_script.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class SlurmScriptTest : public testing::Test {
 protected:
  SlurmScriptTest()
      : run_dir_(
            testing::TempDir() + "/it's " +
            testing::UnitTest::GetInstance()->current_test_info()->name()) {
    job_.name = "digits";
    job_.plan.job_file = "/jobs/digits.job";
    job_.plan.run_dir = run_dir_;
    job_.port_base = 8888;
  }

  static SlurmScriptOptions Options() {
    return {.launch = "/opt/muster/bin/launch",
            .musterctl = "/opt/muster/bin/musterctl",
            .restart_count_max = 2};
  }

  // Runs the script with `body` instead of srun, and returns the script's
  // status. $attempt is the number of restarts.
  int Run(const std::string& body) {
    const std::string path = testing::TempDir() + "/script";
    std::ofstream(path) << "srun() { " << body << "; }\n"
                        << "scontrol() { echo scontrol \"$@\" >&2; "
                        << scontrol_ << "; }\n"
                        << "scancel() { echo scancel \"$@\"; " << scancel_
                        << "; }\n"
                        << SlurmScript(job_, Options());
    environment_["SLURM_JOB_ID"] = "7";
    environment_["SLURM_JOB_NUM_NODES"] = "2";
    absl::StatusOr<std::unique_ptr<ProcessUnderTest>> bash =
        ProcessUnderTest::Start({"bash", path}, environment_);
    EXPECT_OK(bash);
    if (!bash.ok()) return -1;
    const absl::StatusOr<ProcessEnd> end = (*bash)->AwaitEnd();
    EXPECT_OK(end);
    output_ = (*bash)->output();
    return end.ok() ? end->ShellCode() : -1;
  }

  const std::string run_dir_;
  ProcessUnderTest::Environment environment_;
  // The commands that these functions run after they have printed their
  // arguments.
  std::string scontrol_ = "true";
  std::string scancel_ = "true";
  std::string output_;
  EngineJob job_;
};

TEST_F(SlurmScriptTest, AsksForATaskOfEachRoleAndASignalBeforeTheEnd) {
  const std::string script = SlurmScript(job_, Options());
  EXPECT_THAT(script, AllOf(HasSubstr("#SBATCH --ntasks=5\n"),
                            HasSubstr("#SBATCH --job-name=digits\n"),
                            HasSubstr("#SBATCH --signal=TERM@60\n"),
                            HasSubstr("#SBATCH --distribution=block\n"),
                            HasSubstr("MUSTER_INSECURE=true"),
                            Not(HasSubstr("$NAME"))));
}

TEST_F(SlurmScriptTest, GpusAreAskedForIfThereShallBeAny) {
  EXPECT_THAT(SlurmScript(job_, Options()), Not(HasSubstr("gpus")));
  SlurmScriptOptions options = Options();
  options.task_gpus = 2;
  EXPECT_THAT(SlurmScript(job_, options),
              HasSubstr("\n#SBATCH --gpus-per-task=2\nset -euo pipefail\n"));
}

TEST_F(SlurmScriptTest, TasksGetTheirClusterAndTheCommand) {
  job_.plan.settings = {{"text", "it's $HOME"}};
  job_.plan.environment = {{"MUSTER_SEED", "7"}};
  EXPECT_EQ(Run("printf '<%s>' \"$@\"; env | grep MUSTER_ | sort"), 0);
  EXPECT_THAT(
      output_,
      AllOf(HasSubstr("</opt/muster/bin/launch><--task>"
                      "<--job=/jobs/digits.job><--set><text=it's $HOME>"),
            HasSubstr("MUSTER_CLUSTER_RESOLVER=slurm"),
            HasSubstr("MUSTER_CLUSTER_TASKS=chief=1,ps=2,worker=2"),
            HasSubstr("MUSTER_RUN_DIR=" + run_dir_ + "\n"),
            HasSubstr("MUSTER_SEED=7"),
            HasSubstr("MUSTER_SERVER_RETURN_TIMEOUT=0")));
}

TEST_F(SlurmScriptTest, LostTasksAreStartedAgain) {
  EXPECT_EQ(Run("((attempt < 1)) && return 137; "
                "((attempt < 2)) && return 138; echo done"),
            0);
  EXPECT_THAT(output_, AllOf(HasSubstr("attempt 0: srun ended with 137"),
                             HasSubstr("attempt 1: srun ended with 138"),
                             HasSubstr("done")));
}

TEST_F(SlurmScriptTest, AttemptsAreBounded) {
  EXPECT_EQ(Run("echo again; return 138"), 138);
  EXPECT_THAT(output_,
              AllOf(HasSubstr("attempt 2"), Not(HasSubstr("attempt 3"))));
}

TEST_F(SlurmScriptTest, OtherStatusesEndTheJob) {
  for (const int status : {1, 2, 143}) {
    EXPECT_EQ(Run("return " + std::to_string(status)), status);
    EXPECT_THAT(output_, Not(HasSubstr("attempt")));
  }
}

TEST_F(SlurmScriptTest, APreemptedJobIsQueuedAgain) {
  scontrol_ = "echo PreemptTime=2026-11-28T12:00:00";
  for (const int status : {137, 138, 143}) {
    EXPECT_EQ(Run("return " + std::to_string(status)), status);
    EXPECT_THAT(output_, AllOf(HasSubstr("scontrol requeue 7"),
                               Not(HasSubstr("attempt"))));
  }
  EXPECT_EQ(Run("return 1"), 1);
  EXPECT_THAT(output_, Not(HasSubstr("requeue")));
  scontrol_ = "echo PreemptTime=None";
  EXPECT_EQ(Run("return 143"), 143);
  EXPECT_THAT(output_, Not(HasSubstr("requeue")));
}

// In the subshell of srun, $$ is still the shell of the script.
TEST_F(SlurmScriptTest, ASignalToTheScriptSavesAndQueuesAgain) {
  scancel_ = "echo told >\"$MUSTER_RUN_DIR/told\"";
  EXPECT_EQ(Run("mkfifo \"$MUSTER_RUN_DIR/told\"; kill -USR1 $$; "
                "read -r _ <\"$MUSTER_RUN_DIR/told\"; return 143"),
            143);
  EXPECT_THAT(output_, AllOf(HasSubstr("scancel --signal=TERM 7"),
                             HasSubstr("the job is queued again"),
                             HasSubstr("scontrol requeue 7")));
}

TEST_F(SlurmScriptTest, ArraysAreRefused) {
  environment_["SLURM_ARRAY_TASK_ID"] = "3";
  EXPECT_EQ(Run("echo started"), 2);
  EXPECT_THAT(output_,
              AllOf(HasSubstr("sbatch --array: every element would train the "
                              "same job"),
                    Not(HasSubstr("started"))));
}

// srun prints the socket table of a node instead of this machine's.
TEST_F(SlurmScriptTest, PortsInUseOnANodeAreNotTaken) {
  job_.port_base.reset();
  // 7 * 31 modulo 99 is 19: the search begins at 20000 + 19 * 128.
  const std::string tasks = "echo \"base $MUSTER_PORT_BASE\"";
  EXPECT_EQ(Run("if [[ \"$*\" != *launch* ]]; then echo \"$*\" >&2; else " +
                tasks + "; fi"),
            0);
  EXPECT_THAT(output_, AllOf(HasSubstr("--nodes=2 --ntasks=2 "
                                       "--ntasks-per-node=1"),
                             HasSubstr("base 22432")));
  // The last port of that range and the first of the next one.
  EXPECT_EQ(Run("if [[ \"$*\" != *launch* ]]; then "
                "echo '  sl  local_address rem_address   st tx_queue'; "
                "echo '0: 0100007F:581F 00000000:0000 0A 0'; "
                "echo '1: 00000000000000000000000000000000:5820 0:0 0A 0'; "
                "echo '2: 0100007F:58A0 0100007F:1234 01 0'; "
                "else " +
                tasks + "; fi"),
            0);
  EXPECT_THAT(output_, HasSubstr("base 22688"));
}

TEST_F(SlurmScriptTest, AJobThatIsDoneIsNotRepeatedForALostWorker) {
  EXPECT_EQ(Run("touch \"$MUSTER_RUN_DIR/summary.json\"; return 137"), 0);
  EXPECT_THAT(output_, Not(HasSubstr("attempt")));
}

TEST_F(SlurmScriptTest, ASummaryOfAnEarlierJobIsNotThatOfThisOne) {
  EXPECT_EQ(Run("touch --date=@1 \"$MUSTER_RUN_DIR/summary.json\"; "
                "((attempt < 1)) && return 137; echo done"),
            0);
  EXPECT_THAT(output_, AllOf(HasSubstr("attempt 0"), HasSubstr("done")));
}

TEST_F(SlurmScriptTest, WithTlsEachRunHasCertificates) {
  job_.tls = true;
  const std::string script = SlurmScript(job_, Options());
  EXPECT_THAT(script,
              AllOf(HasSubstr("/opt/muster/bin/musterctl gen-certs "
                              "--job_id=\"slurm-$SLURM_JOB_ID\""),
                    HasSubstr("--chiefs=1 --workers=2 --ps=2"),
                    HasSubstr("export MUSTER_TLS_DIR=\"$MUSTER_RUN_DIR\"/tls"),
                    Not(HasSubstr("INSECURE"))));
}

TEST_F(SlurmScriptTest, WithoutARunFolderEveryJobHasItsOwn) {
  job_.plan.run_dir.clear();
  EXPECT_THAT(SlurmScript(job_, Options()),
              HasSubstr("export MUSTER_RUN_DIR=\"$SLURM_SUBMIT_DIR\"/runs/"
                        "\"$SLURM_JOB_ID\"\n"));
}

}  // namespace
}  // namespace muster
