#include "common/net/process/host_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(HostProcessTest, DescribesThisProcess) {
  const HostProcess process = ThisProcess();
  EXPECT_EQ(process.pid, getpid());
  EXPECT_NE(process.start_ticks, 0);
  EXPECT_NE(process.boot_id, "");
  EXPECT_NE(process.pid_namespace, "");
  EXPECT_EQ(process.ToString(),
            absl::StrCat("pid ", getpid(), " on host ", process.host));
  EXPECT_EQ(StateOf(process), ProcessState::kRunning);
}

TEST(HostProcessTest, AProcessThatHasEndedIsNotRunning) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    pause();
    _exit(0);
  }
  const HostProcess process = ProcessOfPid(child);
  EXPECT_EQ(StateOf(process), ProcessState::kRunning);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  siginfo_t end;
  ASSERT_EQ(waitid(P_PID, child, &end, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(StateOf(process), ProcessState::kEnded) << "not waited for";
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(StateOf(process), ProcessState::kEnded);
}

TEST(HostProcessTest, AnotherProcessWithItsPidIsAnother) {
  HostProcess process = ThisProcess();
  --process.start_ticks;
  EXPECT_EQ(StateOf(process), ProcessState::kEnded);
}

TEST(HostProcessTest, ProcessesOfOtherMachinesAndContainersAreUnknown) {
  HostProcess process = ThisProcess();
  process.boot_id = "another";
  EXPECT_EQ(StateOf(process), ProcessState::kUnknown);
  process = ThisProcess();
  process.pid_namespace = "pid:[1]";
  EXPECT_EQ(StateOf(process), ProcessState::kUnknown);
  EXPECT_EQ(StateOf(HostProcess()), ProcessState::kUnknown);
}

}  // namespace
}  // namespace muster
