// Tests the executable `launch` as users run it, with shell scripts instead of
// training.
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/process/child_process.h"
#include "common/net/process/run_lease.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// Beginning of a script: sets $role and $index from TF_CONFIG.
constexpr absl::string_view kReadConfig =
    "role=$(echo \"$TF_CONFIG\" | sed 's/.*\"type\":\"\\([a-z]*\\)\".*/\\1/');"
    "index=$(echo \"$TF_CONFIG\" | sed 's/.*\"index\":\\([0-9]*\\).*/\\1/');";

class LaunchTest : public testing::Test {
 protected:
  LaunchTest()
      : run_dir_(absl::StrCat(
            testing::TempDir(), "/",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {}

  // Starts `launch` with `flags`. Every task runs `script`.
  std::unique_ptr<ProcessUnderTest> Launch(std::vector<std::string> flags,
                                           absl::string_view script) {
    flags.insert(flags.begin(), {"deploy/launch/launch", "--program=/bin/sh",
                                 absl::StrCat("--run_dir=", run_dir_)});
    for (const std::string& argument : {std::string("--"), std::string("-c"),
                                        absl::StrCat(kReadConfig, script)}) {
      flags.push_back(argument);
    }
    absl::StatusOr<std::unique_ptr<ProcessUnderTest>> process =
        ProcessUnderTest::Start(flags);
    EXPECT_OK(process);
    return *std::move(process);
  }

  int ExitCode(ProcessUnderTest& launch) {
    const absl::StatusOr<ProcessEnd> end = launch.AwaitEnd();
    EXPECT_OK(end);
    return end.ok() ? end->ShellCode() : -1;
  }

  // Blocks until a line such as "worker 0 | pid 123" arrives, and returns its
  // number. Names of tasks are padded to the longest one.
  pid_t AwaitPid(ProcessUnderTest& launch, absl::string_view task) {
    const absl::StatusOr<std::string> line =
        launch.AwaitLine(absl::StrCat(task, " | pid "));
    EXPECT_OK(line);
    int pid = -1;
    if (line.ok()) {
      EXPECT_TRUE(absl::SimpleAtoi(line->substr(line->rfind(' ') + 1), &pid));
    }
    return pid;
  }

  std::string ReadLog(const std::string& name) {
    std::stringstream text;
    text << std::ifstream(absl::StrCat(run_dir_, "/logs/", name)).rdbuf();
    return text.str();
  }

  const std::string run_dir_;
};

TEST_F(LaunchTest, EveryTaskRunsAndItsOutputIsShown) {
  const auto launch = Launch({"--workers=2", "--ps=1", "--cores=6"},
                             "echo I am $role $index; echo $MUSTER_THREADS "
                             "threads >&2; echo $MUSTER_RUN_DIR");
  EXPECT_EQ(ExitCode(*launch), 0);
  EXPECT_THAT(launch->output(),
              AllOf(HasSubstr("chief    | I am chief 0"),
                    HasSubstr("worker 0 | I am worker 0"),
                    HasSubstr("worker 1 | I am worker 1"),
                    HasSubstr("worker 1 | 2 threads"),
                    HasSubstr("ps 0     | I am ps 0"),
                    HasSubstr(absl::StrCat("ps 0     | ", run_dir_))));
  EXPECT_THAT(ReadLog("worker-1.log"),
              AllOf(HasSubstr("I am worker 1\n"), HasSubstr("2 threads\n")));
}

TEST_F(LaunchTest, LogsOfATaskOnTheTerminalHaveLines) {
  ChildProcess::Options options;
  options.standard_output = ChildProcess::Output::kTerminal;
  options.arguments = {
      "deploy/launch/launch",
      "--program=/bin/sh",
      "--workers=1",
      "--ps=1",
      absl::StrCat("--run_dir=", run_dir_),
      "--",
      "-c",
      absl::StrCat(kReadConfig,
                   "if [ $role = chief ]; then printf 'Epoch 1\\n"
                   "\\r\\033[32m1/2\\033[0m\\b\\b\\b\\r2/2 done\\n'; fi")};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ChildProcess> launch,
                       ChildProcess::Start(options));
  std::string shown;
  char buffer[4096];
  ssize_t count;
  while ((count = read(launch->stdout_fd(), buffer, sizeof(buffer))) > 0) {
    shown.append(buffer, count);
  }
  const std::optional<ProcessEnd> end = launch->Wait(absl::Minutes(1));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->ShellCode(), 0);
  EXPECT_THAT(shown, HasSubstr("\x1b[32m1/2\x1b[0m"));
  EXPECT_EQ(ReadLog("chief.log"), "Epoch 1\n2/2 done\n");
}

TEST_F(LaunchTest, AFolderInUseIsLeftAlone) {
  {
    ASSERT_OK_AND_ASSIGN(const auto lease, RunLease::Take({.run_dir = run_dir_,
                                                           .task = "chief 0",
                                                           .incarnation = 1}));
    const auto launch = Launch({"--workers=1", "--ps=1"}, "echo started");
    EXPECT_EQ(ExitCode(*launch), 2);
    EXPECT_THAT(launch->output(),
                AllOf(HasSubstr(absl::StrCat("is in use: pid ", getpid())),
                      Not(HasSubstr("started"))));
    EXPECT_FALSE(std::filesystem::exists(run_dir_ + "/logs"));
  }
  EXPECT_EQ(ExitCode(*Launch({"--workers=1", "--ps=1"}, "echo started")), 0);
}

TEST_F(LaunchTest, TheCoordinatorsStatusIsTheJobs) {
  const auto launch = Launch({"--workers=1", "--ps=1"},
                             "if [ $role = chief ]; then exit 7; fi; "
                             "exec sleep infinity");
  EXPECT_EQ(ExitCode(*launch), 7);
  EXPECT_THAT(launch->output(),
              HasSubstr("the job has failed: chief exited with status 7"));
}

TEST_F(LaunchTest, WithoutACoordinatorTheFirstFailureIsTheJobs) {
  const auto launch = Launch({"--workers=2", "--ps=0"},
                             "if [ $index = 1 ]; then exit 5; fi; "
                             "exec sleep infinity");
  EXPECT_EQ(ExitCode(*launch), 5);
}

TEST_F(LaunchTest, TasksThatOutstayTheJobAreStopped) {
  const auto launch =
      Launch({"--workers=1", "--ps=1", "--grace_period=100ms"},
             "trap '' TERM; if [ $role = chief ]; then exit 0; fi; "
             "while :; do sleep infinity; done");
  EXPECT_EQ(ExitCode(*launch), 0);
  EXPECT_THAT(launch->output(),
              AllOf(HasSubstr("ps 0 has not ended within 100ms; stopping it"),
                    HasSubstr("ps 0 has not ended within 100ms; killing it")));
}

TEST_F(LaunchTest, SignalsAreForwardedAndNoProcessIsLeft) {
  for (int signal : {SIGINT, SIGTERM}) {
    const auto launch =
        Launch({"--workers=1", "--ps=1"},
               "trap 'echo told to stop; kill $child; exit 0' INT TERM; "
               "sleep infinity & child=$!; echo pid $$; wait");
    std::vector<pid_t> pids;
    for (int i = 0; i < 3; ++i) pids.push_back(AwaitPid(*launch, ""));
    launch->SendSignal(signal);
    EXPECT_EQ(ExitCode(*launch), 128 + signal);
    EXPECT_THAT(launch->output(),
                AllOf(HasSubstr("chief    | told to stop"),
                      HasSubstr(absl::StrCat("launch   | stopping the job (",
                                             strsignal(signal), ")"))));
    for (pid_t pid : pids) EXPECT_TRUE(AwaitProcessGone(pid)) << pid;
  }
}

TEST_F(LaunchTest, KillingLaunchKillsEveryTask) {
  const auto launch =
      Launch({"--workers=2", "--ps=1"}, "echo pid $$; exec sleep infinity");
  std::vector<pid_t> pids;
  for (int i = 0; i < 4; ++i) pids.push_back(AwaitPid(*launch, ""));
  launch->SendSignal(SIGKILL);
  EXPECT_EQ(ExitCode(*launch), 137);
  for (pid_t pid : pids) EXPECT_TRUE(AwaitProcessGone(pid)) << pid;
}

TEST_F(LaunchTest, ALostWorkerIsStartedAgain) {
  std::filesystem::create_directories(run_dir_);
  ASSERT_EQ(mkfifo(absl::StrCat(run_dir_, "/again").c_str(), 0600), 0);
  const auto launch =
      Launch({"--workers=1", "--ps=1", "--restart", "--grace_period=100ms"},
             absl::StrCat("cd ", run_dir_, "; if [ $role = chief ]; then ",
                          "read line < again; exit 0; fi; if [ $role = worker "
                          "]; then if [ -e first ]; then ",
                          "echo > again; fi; touch first; fi; echo pid $$; ",
                          "exec sleep infinity"));
  kill(AwaitPid(*launch, "worker 0"), SIGKILL);
  EXPECT_OK(launch->AwaitLine("worker 0 was ended by signal 9 (Killed)"));
  EXPECT_GT(AwaitPid(*launch, "worker 0"), 0);
  EXPECT_EQ(ExitCode(*launch), 0);
}

TEST_F(LaunchTest, ALostServerIsStartedAgain) {
  std::filesystem::create_directories(run_dir_);
  ASSERT_EQ(mkfifo(absl::StrCat(run_dir_, "/again").c_str(), 0600), 0);
  const auto launch =
      Launch({"--workers=1", "--ps=1", "--restart", "--grace_period=100ms"},
             absl::StrCat("cd ", run_dir_, "; if [ $role = chief ]; then ",
                          "read line < again; exit 0; fi; if [ $role = ps "
                          "]; then if [ -e first ]; then ",
                          "echo > again; fi; touch first; fi; echo pid $$; ",
                          "exec sleep infinity"));
  kill(AwaitPid(*launch, "ps 0    "), SIGKILL);
  EXPECT_EQ(ExitCode(*launch), 0);
}

TEST_F(LaunchTest, ALostCoordinatorIsStartedAgain) {
  std::filesystem::create_directories(run_dir_);
  const auto launch = Launch(
      {"--workers=1", "--ps=1", "--restart", "--grace_period=100ms"},
      absl::StrCat("cd ", run_dir_, "; if [ $role = chief ]; then ",
                   "if [ -e second ]; then exit 0; fi; ",
                   "if [ -e first ]; then touch second; exit 138; fi; ",
                   "touch first; kill -KILL $$; fi; exec sleep infinity"));
  EXPECT_EQ(ExitCode(*launch), 0);
  EXPECT_THAT(launch->output(),
              AllOf(HasSubstr("chief was ended by signal 9 (Killed)"),
                    HasSubstr("chief exited with status 138")));
}

TEST_F(LaunchTest, TheFailureOfACoordinatorEndsTheJob) {
  const auto launch =
      Launch({"--workers=1", "--ps=1", "--restart", "--grace_period=100ms"},
             "if [ $role = chief ]; then exit 7; fi; exec sleep infinity");
  EXPECT_EQ(ExitCode(*launch), 7);
}

TEST_F(LaunchTest, AFailedEvaluatorFailsLaunch) {
  const auto launch =
      Launch({"--workers=1", "--ps=1", "--evaluator", "--grace_period=30s"},
             "if [ $role = evaluator ]; then exit 7; fi");
  EXPECT_EQ(ExitCode(*launch), 7);
  EXPECT_THAT(launch->output(),
              HasSubstr("the job is done, but its evaluator failed with status "
                        "7, and so does launch"));
}

TEST_F(LaunchTest, TheChiefIsToldToStopBeforeTheOthers) {
  const auto launch = Launch(
      {"--workers=2", "--ps=1"},
      absl::StrCat("trap 'test $role = chief && touch ", run_dir_,
                   "/saved; test -e ", run_dir_,
                   "/saved || echo too early; kill $child; exit 0' INT TERM; "
                   "sleep infinity & child=$!; echo pid $$; wait"));
  for (int i = 0; i < 4; ++i) AwaitPid(*launch, "");
  launch->SendSignal(SIGTERM);
  EXPECT_EQ(ExitCode(*launch), 143);
  for (const char* log : {"worker-0.log", "worker-1.log", "ps-0.log"}) {
    EXPECT_THAT(ReadLog(log),
                AllOf(HasSubstr("pid "), Not(HasSubstr("too early"))));
  }
}

TEST_F(LaunchTest, AfterASignalOnlyTheLeadingTaskIsShown) {
  const auto launch =
      Launch({"--workers=1", "--ps=1"},
             "trap 'echo $role is told; kill $child; exit 0' INT TERM; "
             "sleep infinity & child=$!; echo pid $$; wait");
  for (int i = 0; i < 3; ++i) AwaitPid(*launch, "");
  launch->SendSignal(SIGINT);
  EXPECT_EQ(ExitCode(*launch), 130);
  EXPECT_THAT(launch->output(), AllOf(HasSubstr("chief is told"),
                                      Not(HasSubstr("worker is told")),
                                      Not(HasSubstr("ps is told"))));
  EXPECT_THAT(ReadLog("worker-0.log"), HasSubstr("worker is told"));
  EXPECT_THAT(ReadLog("ps-0.log"), HasSubstr("ps is told"));
}

TEST_F(LaunchTest, ACrashLoopIsGivenUpWithItsLastLines) {
  const auto launch =
      Launch({"--workers=1", "--ps=1", "--restart=100", "--grace_period=100ms"},
             "if [ $role = worker ]; then echo no disk; "
             "exit 1; fi; exec sleep infinity");
  EXPECT_OK(launch->AwaitLine("not restarted: crash loop"));
  EXPECT_OK(launch->AwaitLine("the last lines of worker 0:"));
  EXPECT_OK(launch->AwaitLine("launch   |   no disk"));
  launch->SendSignal(SIGTERM);
  EXPECT_EQ(ExitCode(*launch), 143);
}

TEST_F(LaunchTest, AMistakeInAFlagEndsTheJobWithTheUsageStatus) {
  const auto launch = Launch({"--workers=2", "--ps=1", "--restart"},
                             "if [ $role = ps ]; then exit 2; fi; "
                             "exec sleep infinity");
  EXPECT_EQ(ExitCode(*launch), 2);
}

TEST_F(LaunchTest, LogsAreBounded) {
  const auto launch =
      Launch({"--workers=1", "--ps=0", "--log_megabytes=1"},
             "head -c 3000000 /dev/zero | tr '\\0' '\\n'; echo the end");
  EXPECT_EQ(ExitCode(*launch), 0);
  const std::string log = ReadLog("worker-0.log");
  EXPECT_LE(log.size(), size_t{1} << 20);
  EXPECT_THAT(log, HasSubstr("the end\n"));
  EXPECT_LE(ReadLog("worker-0.log.1").size(), size_t{1} << 20);
}

TEST_F(LaunchTest, LaunchReportsItsOwnErrors) {
  const auto complaint = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "deploy/launch/launch");
    const auto launch = ProcessUnderTest::Start(arguments);
    EXPECT_OK(launch);
    EXPECT_EQ(ExitCode(**launch), 2);
    return (*launch)->output();
  };
  EXPECT_THAT(
      complaint({}),
      HasSubstr("give --job=FILE, --model=FILE.keras or --program=BINARY"));
  EXPECT_THAT(complaint({"--model=m.keras", "--job=a.job"}),
              HasSubstr("--job and --model exclude each other"));
  EXPECT_THAT(complaint({"--job=a.job", "--epochs=3"}),
              HasSubstr("--epochs is for --model"));
  EXPECT_THAT(complaint({"--model=m.keras", "--train=t.txt"}),
              HasSubstr("ends in .csv or .npy"));
  EXPECT_THAT(complaint({"--wrokers=2"}),
              HasSubstr("did you mean \"workers\""));
  EXPECT_THAT(complaint({"a.job"}), HasSubstr("did you mean --job=a.job?"));
  EXPECT_THAT(complaint({"--program=/bin/sh", "--set", "a=b"}),
              HasSubstr("launch --program=/bin/sh -- --set a=b"));
  EXPECT_THAT(complaint({"--grace_period=10", "--program=/bin/sh"}),
              HasSubstr("a duration with its unit, as in 500ms"));
  EXPECT_THAT(complaint({"--job=/no/such.job"}),
              HasSubstr("--job: cannot read /no/such.job"));
  EXPECT_THAT(complaint({"--program=/no/such/program",
                         absl::StrCat("--run_dir=", run_dir_)}),
              HasSubstr("cannot run /no/such/program"));
}

TEST_F(LaunchTest, FlagsOfTasksAreHandedOn) {
  const auto launch = Launch(
      {"--workers=1", "--ps=1", "--log_format=json", "--check_numerics",
       "--max_recoveries=3", "--evaluator_timeout=5m", "--status_job=mine"},
      "echo $MUSTER_LOG_FORMAT $MUSTER_CHECK_NUMERICS $MUSTER_MAX_RECOVERIES "
      "$MUSTER_EVALUATOR_TIMEOUT $MUSTER_STATUS_JOB.");
  EXPECT_EQ(ExitCode(*launch), 0);
  EXPECT_THAT(launch->output(),
              AllOf(HasSubstr("chief    | json true 3 5m mine."),
                    HasSubstr("worker 0 | json true 3 5m ."),
                    HasSubstr("ps 0     | json true 3 5m .")));
}

TEST_F(LaunchTest, ATemporaryFolderIsNotNamed) {
  const auto named = Launch({"--workers=0", "--ps=0"}, "true");
  EXPECT_EQ(ExitCode(*named), 0);
  EXPECT_THAT(named->output(),
              AllOf(HasSubstr(absl::StrCat("launch: 1 process; logs in ",
                                           run_dir_, "/logs\n")),
                    HasSubstr("the job is done; see ")));
  const auto unnamed =
      Launch({"--workers=0", "--ps=0", "--temporary_run_dir"}, "true");
  EXPECT_EQ(ExitCode(*unnamed), 0);
  EXPECT_THAT(unnamed->output(), AllOf(HasSubstr("launch: 1 process\n"),
                                       EndsWith("launch: the job is done"),
                                       Not(HasSubstr(run_dir_))));
}

TEST_F(LaunchTest, HelpIsAnswered) {
  const auto launch =
      ProcessUnderTest::Start({"deploy/launch/launch", "--help"});
  ASSERT_OK(launch);
  EXPECT_EQ(ExitCode(**launch), 0);
  EXPECT_THAT((*launch)->output(),
              AllOf(HasSubstr("Examples:"), HasSubstr("--workers=2"),
                    HasSubstr("--restart="), Not(HasSubstr("--tf_config"))));
}

// script(1) runs launch on a terminal, so the chief gets a terminal, too.
TEST_F(LaunchTest, OnATerminalTheChiefDrawsItsOwnProgress) {
  const auto script = ProcessUnderTest::Start(
      {"/bin/sh", "-c",
       absl::StrCat(
           "exec script -qec \"deploy/launch/launch --workers=1 --ps=1 "
           "--run_dir=",
           run_dir_,
           " --program=/bin/sh -- -c 'test -t 1 && "
           "printf \\\"bar\\\\\\\\rdone on a terminal\\\\\\\\n\\\"'\" "
           "/dev/null")});
  ASSERT_OK(script);
  EXPECT_EQ(ExitCode(**script), 0) << (*script)->output();
  EXPECT_THAT((*script)->output(), HasSubstr("bar\rdone on a terminal"));
}

TEST_F(LaunchTest, WithTlsEveryTaskGetsACertificateThatOnlyItsUserReads) {
  auto launch = Launch({"--workers=1", "--ps=0", "--tls=auto"},
                       "for file in $MUSTER_TLS_CERT $MUSTER_TLS_KEY "
                       "$MUSTER_TLS_CA; do stat -c 'mode %a' $file; done;"
                       "openssl x509 -in $MUSTER_TLS_CERT -noout -ext "
                       "subjectAltName;"
                       "openssl verify -CAfile $MUSTER_TLS_CA $MUSTER_TLS_CERT;"
                       "ls -d $(dirname $MUSTER_TLS_KEY)/ca.key");
  ExitCode(*launch);
  const std::string output = launch->output();
  EXPECT_THAT(output,
              AllOf(HasSubstr("mode 600"), HasSubstr("/worker/0"),
                    HasSubstr("worker-0.pem: OK"), HasSubstr("No such file")));
  EXPECT_THAT(output, Not(HasSubstr("mode 644")));
  EXPECT_EQ(std::filesystem::status(run_dir_ + "/tls").permissions(),
            std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace muster
