#include "common/core/system/wait_line.h"

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "common/core/system/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::MatchesRegex;

// Runs `write` in a process in the foreground of a terminal with `columns`
// columns. Returns the bytes that the process writes to the terminal, which
// turns "\n" into "\r\n".
std::string OnTerminal(uint16_t columns, absl::FunctionRef<void()> write) {
  winsize size = {.ws_row = 25, .ws_col = columns};
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    write();
    _exit(0);
  }
  std::string output;
  char bytes[256];
  ssize_t count = 0;
  // Fails once the child has closed its side.
  while ((count = read(terminal, bytes, sizeof(bytes))) > 0) {
    output.append(bytes, count);
  }
  close(terminal);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return output;
}

std::string OnPipe(absl::FunctionRef<void()> write) {
  testing::internal::CaptureStderr();
  write();
  return testing::internal::GetCapturedStderr();
}

// Logs two lines of a wait.
void Wait() {
  WaitLine line;
  LOG(INFO) << line << "waiting, 5 s";
  LOG(INFO) << line << "waiting, 10 s";
}

class WaitLineTest : public testing::Test {
 protected:
  WaitLineTest() { SetLogPrefix("worker 1"); }
  ~WaitLineTest() override { SetLogPrefix(""); }
};

TEST_F(WaitLineTest, OnATerminalTheNewestReplacesTheOneBefore) {
  EXPECT_EQ(OnTerminal(80, Wait),
            "\r\x1b[Kworker 1: waiting, 5 s\r\x1b[Kworker 1: waiting, 10 s"
            "\r\n");
}

TEST_F(WaitLineTest, AnotherLineOfTheLogIsNotReplaced) {
  EXPECT_THAT(OnTerminal(80,
                         [] {
                           WaitLine line;
                           LOG(INFO) << line << "waiting, 5 s";
                           LOG(WARNING) << "ps 0 is lost";
                           LOG(INFO) << line << "waiting, 10 s";
                         }),
              MatchesRegex("\r\x1b\\[Kworker 1: waiting, 5 s\r\n"
                           "W[0-9: .]+\\] worker 1: ps 0 is lost\r\n"
                           "\r\x1b\\[Kworker 1: waiting, 10 s\r\n"));
}

TEST_F(WaitLineTest, ALineLongerThanTheTerminalIsWideIsNotReplaced) {
  EXPECT_THAT(OnTerminal(23, Wait),
              MatchesRegex("\r\x1b\\[Kworker 1: waiting, 5 s\r\n"
                           "I[0-9: .]+\\] worker 1: waiting, 10 s\r\n"));
}

TEST_F(WaitLineTest, WithoutATerminalEachIsALine) {
  EXPECT_THAT(OnPipe(Wait),
              MatchesRegex("I[0-9: .]+\\] worker 1: waiting, 5 s\n"
                           "I[0-9: .]+\\] worker 1: waiting, 10 s\n"));
}

TEST_F(WaitLineTest, AWaitWithoutLinesWritesNothing) {
  EXPECT_EQ(OnPipe([] { WaitLine line; }), "");
  EXPECT_EQ(OnTerminal(80, [] { WaitLine line; }), "");
}

}  // namespace
}  // namespace muster
