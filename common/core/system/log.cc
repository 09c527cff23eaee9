#include "common/core/system/log.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/quoted_text.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log_file.h"
#include "common/core/system/log_format.h"

namespace muster {
namespace {

// ReadRecentProblems() returns longer messages truncated.
constexpr size_t kKeptMessageBytesMax = 2000;
constexpr size_t kDefaultTerminalWidth = 80;
// Limit of the lines that wait to be written to the file.
constexpr size_t kPendingBytesMax = size_t{64} << 10;

struct Sink {
  absl::Mutex mutex;
  std::string task ABSL_GUARDED_BY(mutex);
  std::deque<LogRecord> problems ABSL_GUARDED_BY(mutex);
  int64_t warning_count ABSL_GUARDED_BY(mutex) = 0;
  int64_t error_count ABSL_GUARDED_BY(mutex) = 0;

  absl::Mutex file_mutex;
  // Null until WriteLogToFile() opens it. Written by the thread that has set
  // `is_writing`, without the mutex.
  std::unique_ptr<RotatingLog> file ABSL_GUARDED_BY(file_mutex);
  std::string pending_lines ABSL_GUARDED_BY(file_mutex);
  bool is_writing ABSL_GUARDED_BY(file_mutex) = false;
};

// Never destroyed: threads may log while the process ends.
Sink& GlobalSink() {
  static Sink* const sink = new Sink;
  return *sink;
}

std::atomic<LogSeverity> minimum_severity{LogSeverity::kInfo};
std::atomic<LogFormat> format{LogFormat::kText};
// True if the last line on the terminal is a line of a WaitLine, which the next
// one replaces.
std::atomic<bool> terminal_has_open_line{false};

void WriteToStderr(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;  // There is nowhere to report it.
    text.remove_prefix(written);
  }
}

// Writes the pending lines, unless another thread is writing. A disk that does
// not respond blocks that thread only, and no other thread that logs.
void WritePendingLines(Sink& sink) {
  std::string lines;
  for (bool is_first = true;; is_first = false) {
    RotatingLog* file;
    {
      absl::MutexLock lock(&sink.file_mutex);
      if (sink.file == nullptr || (is_first && sink.is_writing)) return;
      sink.is_writing = !sink.pending_lines.empty();
      if (!sink.is_writing) return;
      lines = std::exchange(sink.pending_lines, std::string());
      file = sink.file.get();
    }
    file->Write(lines);
  }
}

void WriteToFile(absl::string_view line) {
  Sink& sink = GlobalSink();
  {
    absl::MutexLock lock(&sink.file_mutex);
    if (sink.pending_lines.size() + line.size() <= kPendingBytesMax) {
      sink.pending_lines.append(line.data(), line.size());
    }
  }
  WritePendingLines(sink);
}

// Writes `line`. First ends the line of a WaitLine on the terminal.
void WriteLine(absl::string_view line) {
  const bool ends_another =
      terminal_has_open_line.exchange(false, std::memory_order_relaxed);
  WriteToStderr(ends_another ? absl::StrCat("\n", line) : std::string(line));
  WriteToFile(line);
}

// Returns the number of columns of the terminal to which this process may write
// a line that it replaces later; 0 if there is none. Background processes get
// 0, because they would replace each other's lines.
size_t TerminalWidth() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  if (tcgetpgrp(STDERR_FILENO) != getpgrp()) return 0;
  return size.ws_col == 0 ? kDefaultTerminalWidth : size.ws_col;
}

// Writes `text` over the previous line of the wait on the terminal, and appends
// `line` to the file. Writes `line` to both if `text` does not fit on the
// terminal.
void WriteWaitLine(absl::string_view text, absl::string_view line) {
  if (text.size() >= TerminalWidth()) {
    WriteLine(line);
    return;
  }
  terminal_has_open_line.store(true, std::memory_order_relaxed);
  WriteToStderr(absl::StrCat("\r\x1b[K", text));
  WriteToFile(line);
}

void EndWaitLine() {
  if (terminal_has_open_line.exchange(false, std::memory_order_relaxed)) {
    WriteToStderr("\n");
  }
}

std::string JsonString(absl::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    const char first = text[0];
    if (length == 0) {
      json.append("\\ufffd");
    } else if (first == '"' || first == '\\') {
      json.append({'\\', first});
    } else if (first == '\n') {
      json.append("\\n");
    } else if (static_cast<unsigned char>(first) < 0x20 || first == 0x7F) {
      absl::StrAppendFormat(&json, "\\u%04x", static_cast<unsigned>(first));
    } else {
      json.append(text.data(), length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  json.push_back('"');
  return json;
}

// Returns the message as text. Characters in it cannot change a terminal, and
// its further lines are indented, so that they do not look like other messages.
std::string TextOf(absl::string_view message) {
  return absl::StrReplaceAll(PrintableText(message), {{"\n", "\n  "}});
}

absl::string_view NameOf(LogSeverity severity) {
  switch (severity) {
    case LogSeverity::kInfo:
      return "INFO";
    case LogSeverity::kWarning:
      return "WARNING";
    case LogSeverity::kError:
      break;
  }
  return "ERROR";
}

// `file` is empty for a line of WriteLogLine().
std::string JsonLine(LogSeverity severity, absl::Time time,
                     absl::string_view task, absl::string_view file, int line,
                     absl::string_view message) {
  return absl::StrCat(
      "{\"time\":\"",
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone()),
      "\",\"severity\":\"", NameOf(severity), "\",\"task\":", JsonString(task),
      file.empty()
          ? ""
          : absl::StrCat(",\"file\":", JsonString(file), ",\"line\":", line),
      ",\"message\":", JsonString(message), "}\n");
}

// Keeps a warning or an error. Returns the name of the task.
std::string Record(LogSeverity severity, absl::Time time,
                   absl::string_view message) {
  Sink& sink = GlobalSink();
  absl::MutexLock lock(&sink.mutex);
  if (severity != LogSeverity::kInfo) {
    ++(severity == LogSeverity::kError ? sink.error_count : sink.warning_count);
    sink.problems.push_back(
        {.time = time,
         .severity = severity,
         .message = std::string(message.substr(0, kKeptMessageBytesMax))});
    if (sink.problems.size() > RecentProblems::kRecordsMax) {
      sink.problems.pop_front();
    }
  }
  return sink.task;
}

}  // namespace

void SetLogPrefix(absl::string_view prefix) {
  Sink& sink = GlobalSink();
  absl::MutexLock lock(&sink.mutex);
  sink.task = std::string(prefix);
}

void SetMinimumLogSeverity(LogSeverity severity) {
  minimum_severity.store(severity, std::memory_order_relaxed);
}

void SetLogFormat(LogFormat new_format) {
  format.store(new_format, std::memory_order_relaxed);
}

void WriteLogLine(LogSeverity severity, absl::string_view message) {
  const absl::Time now = absl::Now();
  const std::string task = Record(severity, now, message);
  WriteLine(format.load(std::memory_order_relaxed) == LogFormat::kJson
                ? JsonLine(severity, now, task, "", 0, message)
                : absl::StrCat(TextOf(message), "\n"));
}

absl::Status WriteLogToFile(const std::string& path, int64_t bytes_max) {
  Sink& sink = GlobalSink();
  {
    absl::MutexLock lock(&sink.file_mutex);
    if (sink.file != nullptr) return absl::OkStatus();
    auto file = std::make_unique<RotatingLog>(path, bytes_max);
    RETURN_IF_ERROR(file->Open());
    sink.file = std::move(file);
  }
  WritePendingLines(sink);
  return absl::OkStatus();
}

RecentProblems ReadRecentProblems() {
  Sink& sink = GlobalSink();
  absl::MutexLock lock(&sink.mutex);
  return {.records = {sink.problems.begin(), sink.problems.end()},
          .warning_count = sink.warning_count,
          .error_count = sink.error_count};
}

namespace internal {

LogLine::LogLine(LogSeverity severity, const char* file, int line)
    : severity_(severity), file_(file), line_(line) {}

LogLine::~LogLine() {
  const absl::Time now = absl::Now();
  const std::string text = stream_.str();
  absl::string_view message = text;
  // See WaitLine.
  const bool is_of_wait = absl::ConsumePrefix(&message, "\r");
  if (is_of_wait && message.empty()) {
    EndWaitLine();
    return;
  }
  const std::string task = Record(severity_, now, message);
  if (severity_ < minimum_severity.load(std::memory_order_relaxed)) return;
  if (format.load(std::memory_order_relaxed) == LogFormat::kJson) {
    WriteLine(JsonLine(severity_, now, task, file_, line_, message));
    return;
  }
  const char letter = "IWE"[static_cast<int>(severity_)];
  const std::string named =
      absl::StrCat(task, task.empty() ? "" : ": ", TextOf(message));
  const std::string line = absl::StrCat(
      std::string(1, letter),
      absl::FormatTime("%m%d %H:%M:%E3S", now, absl::LocalTimeZone()), "] ",
      named, "\n");
  is_of_wait ? WriteWaitLine(named, line) : WriteLine(line);
}

}  // namespace internal
}  // namespace muster
