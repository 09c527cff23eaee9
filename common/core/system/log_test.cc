#include "common/core/system/log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/log_file.h"
#include "common/core/system/log_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;

class LogTest : public testing::Test {
 protected:
  ~LogTest() override {
    SetLogPrefix("");
    SetLogFormat(LogFormat::kText);
    SetMinimumLogSeverity(LogSeverity::kInfo);
  }

  template <typename Write>
  static std::string Output(Write write) {
    testing::internal::CaptureStderr();
    write();
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(LogTest, WritesText) {
  SetLogPrefix("worker 1");
  EXPECT_THAT(Output([] { LOG(WARNING) << "ps " << 0 << " is lost"; }),
              MatchesRegex("W[0-9]{4} [0-9:.]+\\] worker 1: ps 0 is lost\n"));
  EXPECT_THAT(Output([] { LOG(ERROR) << "stop"; }),
              MatchesRegex("E[0-9]{4} [0-9:.]+\\] worker 1: stop\n"));
}

TEST_F(LogTest, WritesJson) {
  SetLogPrefix("worker 1");
  SetLogFormat(LogFormat::kJson);
  EXPECT_THAT(
      Output([] { LOG(WARNING) << "ps 0 is lost"; }),
      MatchesRegex("\\{\"time\":\"[0-9]{4}-[0-9-]+T[0-9:]+\\.[0-9]{3}Z\","
                   "\"severity\":\"WARNING\",\"task\":\"worker 1\","
                   "\"file\":\"common/core/system/log_test.cc\","
                   "\"line\":[0-9]+,\"message\":\"ps 0 is lost\"\\}\n"));
  EXPECT_THAT(
      Output([] { LOG(ERROR) << "stop"; }),
      HasSubstr(",\"file\":\"common/core/system/log_test.cc\",\"line\":"));
}

TEST_F(LogTest, EscapesJson) {
  SetLogFormat(LogFormat::kJson);
  const auto message = [](absl::string_view text) {
    const std::string line = Output([text] { LOG(INFO) << text; });
    const std::string key = "\"message\":";
    return line.substr(line.find(key) + key.size());
  };
  EXPECT_EQ(message("a \"b\" \\ c"), "\"a \\\"b\\\" \\\\ c\"}\n");
  EXPECT_EQ(message("one\ntwo\t\x01\x7f"),
            "\"one\\ntwo\\u0009\\u0001\\u007f\"}\n");
  EXPECT_EQ(message("\xC3\xBC \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "\"\xC3\xBC \xE2\x82\xAC \xF0\x9F\x98\x80\"}\n");
  // Not UTF-8: a lone byte, an overlong slash, a surrogate, a truncated
  // sequence.
  EXPECT_EQ(message("\xFF"), "\"\\ufffd\"}\n");
  EXPECT_EQ(message("\xC0\xAF"), "\"\\ufffd\\ufffd\"}\n");
  EXPECT_EQ(message("\xED\xA0\x80"), "\"\\ufffd\\ufffd\\ufffd\"}\n");
  EXPECT_EQ(message("\xE2\x82"), "\"\\ufffd\\ufffd\"}\n");
}

TEST_F(LogTest, TextThatIsLoggedCannotForgeALineOrMoveTheCursor) {
  EXPECT_THAT(
      Output([] {
        LOG(INFO) << "cell \x1b[2J\r is bad\nE0101 00:00:00.000] forged";
      }),
      EndsWith("] cell \\x1b[2J\\x0d is bad\n  E0101 00:00:00.000] "
               "forged\n"));
  EXPECT_EQ(Output([] { WriteLogLine(LogSeverity::kError, "a\x1b[mb\nc"); }),
            "a\\x1b[mb\n  c\n");
}

TEST_F(LogTest, DropsLinesBelowTheMinimum) {
  SetMinimumLogSeverity(LogSeverity::kError);
  EXPECT_EQ(Output([] { LOG(WARNING) << "dropped"; }), "");
  EXPECT_THAT(Output([] { LOG(ERROR) << "kept"; }), HasSubstr("kept"));
  EXPECT_EQ(Output([] { WriteLogLine(LogSeverity::kInfo, "first line"); }),
            "first line\n");
}

TEST_F(LogTest, KeepsTheLatestProblems) {
  const RecentProblems before = ReadRecentProblems();
  Output([] {
    LOG(INFO) << "no problem";
    LOG(ERROR) << "an error";
    for (int i = 0; i < 60; ++i) LOG(WARNING) << "warning " << i;
  });
  const RecentProblems after = ReadRecentProblems();
  EXPECT_EQ(after.error_count, before.error_count + 1);
  EXPECT_EQ(after.warning_count, before.warning_count + 60);
  ASSERT_EQ(after.records.size(), RecentProblems::kRecordsMax);
  EXPECT_EQ(after.records.back().message, "warning 59");
  EXPECT_EQ(after.records.front().message, "warning 10");
}

TEST_F(LogTest, AFileGetsLinesLoggedBeforeItWasOpened) {
  EXPECT_THAT(
      WriteLogToFile("/no/such/folder/a.log", 0),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/folder")));
  const std::string path = testing::TempDir() + "/task.log";
  const std::string written = Output([&] {
    LOG(INFO) << "early";
    ASSERT_OK(WriteLogToFile(path, 0));
    ASSERT_OK(WriteLogToFile(path + ".second", 0));
    LOG(INFO) << "late";
  });
  EXPECT_THAT(written, AllOf(HasSubstr("early"), HasSubstr("late")));
  std::stringstream kept;
  kept << std::ifstream(path).rdbuf();
  EXPECT_THAT(kept.str(), EndsWith(written));
  EXPECT_FALSE(std::ifstream(path + ".second").good());
}

// Runs in a separate process, because the log has one file.
void LogToAFullPipe() {
  const std::string path = testing::TempDir() + "/full_pipe";
  if (mkfifo(path.c_str(), 0600) != 0) std::_Exit(2);
  // Opens the pipe for reading too, so that it can be opened for writing.
  const int pipe = open(path.c_str(), O_RDWR | O_NONBLOCK);
  if (pipe < 0 || fcntl(pipe, F_SETPIPE_SZ, 4096) < 0) std::_Exit(3);
  if (!WriteLogToFile(path, 0).ok()) std::_Exit(4);
  absl::Mutex mutex;
  int done_count = 0;
  constexpr int kThreads = 3;
  for (int i = 0; i < kThreads; ++i) {
    std::thread([&] {
      for (int line = 0; line < 100; ++line) LOG(INFO) << std::string(200, 'x');
      absl::MutexLock lock(&mutex);
      ++done_count;
    }).detach();
  }
  const auto all_but_one = [&] { return done_count == kThreads - 1; };
  absl::MutexLock lock(&mutex);
  std::_Exit(
      mutex.AwaitWithTimeout(absl::Condition(&all_but_one), absl::Seconds(30))
          ? 0
          : 5);
}

TEST(LogFileTest, AFileThatCannotBeWrittenBlocksOneThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(LogToAFullPipe(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace muster
