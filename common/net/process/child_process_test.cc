#include "common/net/process/child_process.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kLong = absl::Minutes(1);

ChildProcess::Options Shell(std::string script) {
  ChildProcess::Options options;
  options.arguments = {"/bin/sh", "-c", std::move(script)};
  return options;
}

// Reads until the end of the stream. A terminal ends with EIO.
std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer, count);
  }
}

// Blocks until one line has arrived, and returns it.
std::string ReadLine(int fd) {
  std::string line;
  char c;
  while (read(fd, &c, 1) == 1 && c != '\n') line.push_back(c);
  return line;
}

ProcessEnd RunToEnd(const std::string& script) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child =
      ChildProcess::Start(Shell(script));
  EXPECT_OK(child);
  if (!child.ok()) return {};
  return (*child)->Wait(kLong).value_or(ProcessEnd{.exit_code = -1});
}

TEST(ChildProcessTest, TellsHowAProcessEnded) {
  EXPECT_TRUE(RunToEnd("exit 0").ok());
  EXPECT_EQ(RunToEnd("exit 3").ToString(), "exited with status 3");
  const ProcessEnd killed = RunToEnd("kill -KILL $$");
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_EQ(killed.ShellCode(), 137);
  EXPECT_EQ(killed.ToString(), "was ended by signal 9 (Killed)");
}

TEST(ChildProcessTest, KeepsOutputAndErrorsApart) {
  ASSERT_OK_AND_ASSIGN(auto child,
                       ChildProcess::Start(Shell("echo out; echo err >&2")));
  EXPECT_EQ(ReadAll(child->stdout_fd()), "out\n");
  EXPECT_EQ(ReadAll(child->stderr_fd()), "err\n");
}

TEST(ChildProcessTest, ChangesOnlyTheVariablesNamed) {
  setenv("MUSTER_TEST_KEPT", "kept", 1);
  setenv("MUSTER_TEST_GONE", "there", 1);
  ChildProcess::Options options = Shell(
      "echo $MUSTER_TEST_KEPT ${MUSTER_TEST_GONE:-gone} $MUSTER_TEST_NEW");
  options.environment = {{"MUSTER_TEST_GONE", std::nullopt},
                         {"MUSTER_TEST_NEW", "new one"}};
  ASSERT_OK_AND_ASSIGN(auto child, ChildProcess::Start(options));
  EXPECT_EQ(ReadAll(child->stdout_fd()), "kept gone new one\n");
}

TEST(ChildProcessTest, ATerminalIsATerminal) {
  ChildProcess::Options options =
      Shell("test -t 1 && printf 'a\\rb\\n'; test -t 2 || exit 3");
  options.standard_output = ChildProcess::Output::kTerminal;
  ASSERT_OK_AND_ASSIGN(auto child, ChildProcess::Start(options));
  EXPECT_EQ(ReadAll(child->stdout_fd()), "a\rb\n");
  EXPECT_EQ(child->Wait(kLong)->exit_code, 3);
}

TEST(ChildProcessTest, AMissingProgramIsAnError) {
  ChildProcess::Options options;
  options.arguments = {"/no/such/program"};
  EXPECT_THAT(ChildProcess::Start(options),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("cannot run /no/such/program")));
}

TEST(ChildProcessTest, SignalsReachTheWholeGroup) {
  ASSERT_OK_AND_ASSIGN(
      auto child, ChildProcess::Start(Shell("sleep infinity & echo on; wait")));
  ReadLine(child->stdout_fd());
  EXPECT_EQ(child->Wait(absl::ZeroDuration()), std::nullopt);
  child->SendSignal(SIGTERM);
  EXPECT_EQ(child->Wait(kLong)->signal, SIGTERM);
  // The pipe ends when the last process that holds it has ended.
  EXPECT_EQ(ReadAll(child->stdout_fd()), "");
}

TEST(ChildProcessTest, WhatAChildLeavesBehindEndsWithIt) {
  ASSERT_OK_AND_ASSIGN(auto child,
                       ChildProcess::Start(Shell("sleep infinity & exit 0")));
  EXPECT_TRUE(child->Wait(kLong)->ok());
  EXPECT_EQ(ReadAll(child->stdout_fd()), "");
}

TEST(ChildProcessTest, AForgottenChildIsKilled) {
  int fd;
  {
    ASSERT_OK_AND_ASSIGN(auto child,
                         ChildProcess::Start(Shell("sleep infinity")));
    fd = dup(child->stdout_fd());
  }
  EXPECT_EQ(ReadAll(fd), "");
  close(fd);
}

// If a parent is killed, its child must not continue to run.
TEST(ChildProcessTest, AChildDiesWithItsParent) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    close(fds[0]);
    ChildProcess::Options options = Shell("exec sleep infinity");
    // The grandchild inherits a copy of the pipe's write end.
    absl::StatusOr<std::unique_ptr<ChildProcess>> child =
        ChildProcess::Start(options);
    if (!child.ok() || write(fds[1], "x", 1) != 1) _exit(1);
    pause();
    _exit(1);
  }
  close(fds[1]);
  char c;
  ASSERT_EQ(read(fds[0], &c, 1), 1);
  kill(parent, SIGKILL);
  EXPECT_EQ(read(fds[0], &c, 1), 0);
  close(fds[0]);
}

}  // namespace
}  // namespace muster
