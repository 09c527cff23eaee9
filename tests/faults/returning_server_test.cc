// Real processes: parameter servers with logs or with copies are killed while
// steps are counted, and launch starts them again. The program itself checks
// that every step counts once, and training is never rolled back.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/testing/await_true.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::Not;

// Returns how often `text` is in the output.
int CountLines(const std::string& output, const std::string& text) {
  return static_cast<int>(
      std::vector<std::string>(absl::StrSplit(output, text)).size() - 1);
}

class ReturningServerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(
        testing::TempDir(), "/",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  // Starts the job. Each task writes its process id to a file. `at_start` are
  // commands of a shell that each task runs first; $name is the index of a ps
  // task, "chief", or "worker".
  void Launch(const std::string& at_start = "true", int ps_count = 2,
              const std::string& settings = "",
              const std::string& program = "counting_program") {
    const std::string script = absl::StrCat(
        "name=$(echo $TF_CONFIG | ",
        R"(sed -n 's/.*"type": *"ps", *"index": *\([0-9]*\).*/\1/p'); )",
        R"([ -n "$name" ] || case $TF_CONFIG in )",
        R"(*'"type":"chief"'*) name=chief;; *) name=worker;; esac; )",
        "echo $$ > ", folder_, "/pid.new.$$ && mv ", folder_, "/pid.new.$$ ",
        folder_, "/pid.$name; ", at_start, "; exec tests/faults/", program,
        " --run_dir=", folder_, "/run --set until=", folder_, "/end ",
        settings);
    std::vector<std::string> arguments = {
        "deploy/launch/launch",          "--workers=2",
        absl::StrCat("--ps=", ps_count), "--restart",
        "--run_dir=" + folder_ + "/run", "--program=/bin/sh"};
    arguments.insert(arguments.end(), {"--", "-c", script});
    ASSERT_OK_AND_ASSIGN(launch_, ProcessUnderTest::Start(arguments));
  }

  pid_t PidOf(const absl::AlphaNum& name) {
    pid_t pid = 0;
    std::ifstream(absl::StrCat(folder_, "/pid.", name)) >> pid;
    return pid;
  }

  // Kills the server and waits until launch has started it again.
  void Kill(const absl::AlphaNum& server) {
    const pid_t pid = PidOf(server);
    ASSERT_GT(pid, 0);
    ASSERT_EQ(kill(pid, SIGKILL), 0);
    ASSERT_TRUE(AwaitTrue([&] { return PidOf(server) != pid; }));
  }

  void ExpectEveryClosureCountedOnce() {
    std::ofstream(absl::StrCat(folder_, "/end")).flush();
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, launch_->AwaitEnd());
    ASSERT_EQ(end.ShellCode(), 0) << launch_->output();
    EXPECT_THAT(launch_->output(), HasSubstr("every closure counted once: "));
  }

  std::string folder_;
  std::unique_ptr<ProcessUnderTest> launch_;
};

TEST_F(ReturningServerTest, EveryClosureCountsOnceAndNoneIsUndone) {
  constexpr int kKills = 8;
  Launch();
  ASSERT_OK(launch_->AwaitLine("through: 200"));
  for (int i = 0; i < kKills; ++i) {
    ASSERT_NO_FATAL_FAILURE(Kill(i % 2));
    ASSERT_OK(launch_->AwaitLine("; nothing was undone"));
    ASSERT_OK(launch_->AwaitLine("through: "));
  }
  ASSERT_NO_FATAL_FAILURE(ExpectEveryClosureCountedOnce());
  EXPECT_EQ(CountLines(launch_->output(), "; nothing was undone"), kKills);
  EXPECT_THAT(launch_->output(), Not(HasSubstr("rolled back")));
  // The job has ended, so nothing of its state is needed.
  for (const int server : {0, 1}) {
    EXPECT_FALSE(std::filesystem::exists(absl::StrCat(
        folder_, "/run/server_log/ps-", server, "/segment-000001")));
  }
}

// The server has applied a push, or recorded nothing of it, and the worker does
// not know which. It sends the push again to the next process.
TEST_F(ReturningServerTest, APushWithoutAnAnswerCountsOnce) {
  constexpr int kKills = 4;  // Of each server.
  Launch(absl::StrCat(
      "lives=$(cat ", folder_, "/lives.$name 2>/dev/null || echo 0); ",
      "echo $((lives + 1)) > ", folder_, "/lives.$name; [ $lives -ge ", kKills,
      " ] || case $name in "
      "0) export MUSTER_FAULT=ps.after_apply_before_ack@push=120;; ",
      "1) export MUSTER_FAULT=ps.before_apply@push=90;; esac"));
  for (int i = 0; i < 2 * kKills; ++i) {
    ASSERT_OK(launch_->AwaitLine(": restored "));
  }
  ASSERT_OK(launch_->AwaitLine("; nothing was undone"));
  ASSERT_NO_FATAL_FAILURE(ExpectEveryClosureCountedOnce());
  // The coordinator may miss a process that is killed soon after its start.
  EXPECT_LE(CountLines(launch_->output(), "; nothing was undone"), 2 * kKills);
  EXPECT_THAT(launch_->output(), Not(HasSubstr("rolled back")));
}

// Two servers, each with a copy: task 2 has one of task 0, and 3 of 1.
class CopiedServerTest : public ReturningServerTest {
 protected:
  void LaunchWithCopies(const std::string& settings = "") {
    ASSERT_NO_FATAL_FAILURE(
        Launch("true", /*ps_count=*/4, "--set ps_copies=2 " + settings));
    ASSERT_NO_FATAL_FAILURE(AwaitCopies(2));
    ASSERT_OK(launch_->AwaitLine("through: 50"));
  }
  // Waits for so many copies since the last call.
  void AwaitCopies(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_OK(launch_->AwaitLine(" and can take over"));
    }
  }
  void ExpectNothingUndone(int takeover_count) {
    ASSERT_NO_FATAL_FAILURE(ExpectEveryClosureCountedOnce());
    EXPECT_EQ(CountLines(launch_->output(), " has taken over from "),
              takeover_count);
    EXPECT_THAT(launch_->output(), Not(HasSubstr("rolled back")));
  }
};

TEST_F(CopiedServerTest, TheCopyOfAKilledServerTakesOver) {
  constexpr int kKills = 8;
  ASSERT_NO_FATAL_FAILURE(LaunchWithCopies());
  for (int i = 0; i < kKills; ++i) {
    // The task that serves server i % 2 at present.
    const int task = i % 2 + (i / 2 % 2 == 0 ? 0 : 2);
    ASSERT_NO_FATAL_FAILURE(Kill(task));
    ASSERT_OK(
        launch_->AwaitLine(absl::StrCat(" has taken over from ps ", task)));
    ASSERT_NO_FATAL_FAILURE(AwaitCopies(1));
    ASSERT_OK(launch_->AwaitLine("through: "));
  }
  ExpectNothingUndone(kKills);
}

TEST_F(CopiedServerTest, AServerContinuesWithoutItsKilledCopy) {
  ASSERT_NO_FATAL_FAILURE(LaunchWithCopies());
  for (const int task : {2, 3, 2}) {
    ASSERT_NO_FATAL_FAILURE(Kill(task));
    ASSERT_NO_FATAL_FAILURE(AwaitCopies(1));
    ASSERT_OK(launch_->AwaitLine("through: "));
  }
  ExpectNothingUndone(0);
}

// The suspended task is not told that another one serves. It must acknowledge
// no push, and ends when its stream to the copy has ended.
TEST_F(CopiedServerTest, AServerThatWakesUpIsReplaced) {
  ASSERT_NO_FATAL_FAILURE(LaunchWithCopies("--set heartbeat_timeout=1s"));
  const pid_t pid = PidOf(1);
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  ASSERT_OK(launch_->AwaitLine(" has taken over from ps 1"));
  ASSERT_OK(launch_->AwaitLine("through: "));
  ASSERT_EQ(kill(pid, SIGCONT), 0);
  ASSERT_NO_FATAL_FAILURE(AwaitCopies(1));
  EXPECT_NE(PidOf(1), pid);
  ExpectNothingUndone(1);
}

TEST_F(CopiedServerTest, AServerThatIsToldToEndHandsOver) {
  ASSERT_NO_FATAL_FAILURE(LaunchWithCopies());
  const pid_t pid = PidOf(0);
  ASSERT_EQ(kill(pid, SIGTERM), 0);
  ASSERT_OK(launch_->AwaitLine(" has taken over from ps 0"));
  ASSERT_OK(launch_->AwaitLine("through: "));
  ExpectNothingUndone(1);
}

TEST_F(CopiedServerTest, AServerThatIsToldToEndAwaitsItsCopy) {
  ASSERT_NO_FATAL_FAILURE(LaunchWithCopies());
  const pid_t holder = PidOf(2);
  ASSERT_EQ(kill(holder, SIGKILL), 0);
  ASSERT_EQ(kill(PidOf(0), SIGTERM), 0);
  ASSERT_OK(launch_->AwaitLine(" has taken over from ps 0"));
  ASSERT_OK(launch_->AwaitLine("through: "));
  ExpectNothingUndone(1);
}

TEST_F(CopiedServerTest, ACopySurvivesALostCoordinator) {
  ASSERT_NO_FATAL_FAILURE(Launch("true", /*ps_count=*/4,
                                 "--set ps_copies=2 --set epochs=1000000",
                                 "fit_counting_program"));
  ASSERT_NO_FATAL_FAILURE(AwaitCopies(2));
  ASSERT_OK(launch_->AwaitLine("end of epoch 3"));
  ASSERT_NO_FATAL_FAILURE(Kill("chief"));
  ASSERT_OK(launch_->AwaitLine("continuing the training"));
  ASSERT_NO_FATAL_FAILURE(Kill(0));
  ASSERT_OK(launch_->AwaitLine("takes over from ps 0"));
  ASSERT_OK(launch_->AwaitLine("end of epoch"));
  std::ofstream(absl::StrCat(folder_, "/end")).flush();
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, launch_->AwaitEnd());
  ASSERT_EQ(end.ShellCode(), 0) << launch_->output();
  EXPECT_THAT(launch_->output(), HasSubstr("every step counted once"));
  EXPECT_THAT(launch_->output(), Not(HasSubstr("rolled back to")));
  EXPECT_EQ(CountLines(launch_->output(), "exited with status 138"), 0);
  // The other coordinator has got the copies of the first one.
  EXPECT_EQ(CountLines(launch_->output(), "any longer: until it has one"), 0);
}

TEST_F(CopiedServerTest, AJobStartsAgainInItsRunDirectory) {
  for (int run = 0; run < 2; ++run) {
    ASSERT_NO_FATAL_FAILURE(Launch("true", /*ps_count=*/4,
                                   "--set ps_copies=2 --set epochs=1000000",
                                   "fit_counting_program"));
    ASSERT_NO_FATAL_FAILURE(AwaitCopies(2));
    ASSERT_OK(launch_->AwaitLine("end of epoch 3"));
    ASSERT_EQ(kill(launch_->pid(), SIGTERM), 0);
    ASSERT_OK(launch_->AwaitEnd().status());
  }
}

TEST_F(CopiedServerTest, WithoutBothTasksTrainingIsRolledBack) {
  ASSERT_NO_FATAL_FAILURE(LaunchWithCopies());
  const pid_t pids[] = {PidOf(0), PidOf(2)};
  for (const pid_t pid : pids) ASSERT_EQ(kill(pid, SIGKILL), 0);
  ASSERT_OK(launch_->AwaitLine("restarted without variables"));
}

}  // namespace
}  // namespace muster
