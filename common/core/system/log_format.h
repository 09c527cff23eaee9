#ifndef COMMON_CORE_SYSTEM_LOG_FORMAT_H_
#define COMMON_CORE_SYSTEM_LOG_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/system/log.h"

// The format of LOG(), and the latest problems that it has logged. All
// functions are thread-safe.
namespace muster {

enum class LogFormat {
  // "W1123 04:31:46.123] worker 1: ps 0 is lost". Contains no source line,
  // because users read it. A failed MUSTER_CHECK prints its own source line.
  kText,
  // One JSON object a line: {"time":"2026-11-23T04:31:46.123Z",
  // "severity":"WARNING","task":"worker 1","file":"coordinator/x.cc","line":7,
  // "message":"ps 0 is lost"}. Lines of WriteLogLine() have no file and line.
  // Bytes that are not UTF-8 become U+FFFD.
  kJson,
};

// Sets the format of every later line. The default is kText.
void SetLogFormat(LogFormat format);

// Writes a line that has no time stamp in the text format, such as the first
// line of a process. It is never dropped.
void WriteLogLine(LogSeverity severity, absl::string_view message);

struct LogRecord {
  absl::Time time;
  LogSeverity severity = LogSeverity::kInfo;
  std::string message;
};

// The latest warnings and errors of this process, oldest first, and the total
// number of each.
struct RecentProblems {
  static constexpr size_t kRecordsMax = 50;

  std::vector<LogRecord> records;  // At most kRecordsMax.
  int64_t warning_count = 0;
  int64_t error_count = 0;
};
RecentProblems ReadRecentProblems();

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_LOG_FORMAT_H_
