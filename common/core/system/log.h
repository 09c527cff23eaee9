#ifndef COMMON_CORE_SYSTEM_LOG_H_
#define COMMON_CORE_SYSTEM_LOG_H_

#include <sstream>
#include <string>

#include "absl/strings/string_view.h"

// Writes log lines to standard error: LOG(INFO) << "...", LOG(WARNING),
// LOG(ERROR). Debian's Abseil has no absl/log; this uses the same syntax. Each
// line is written at once, so the lines of processes that share a terminal do
// not interleave.
namespace muster {

enum class LogSeverity { kInfo, kWarning, kError };

// Sets the prefix of every later line of this process, for example "worker 1".
void SetLogPrefix(absl::string_view prefix);

// Lines below `severity` are dropped. The default is kInfo.
void SetMinimumLogSeverity(LogSeverity severity);

namespace internal {

class LogLine {
 public:
  LogLine(LogSeverity severity, const char* file, int line);
  ~LogLine();
  std::ostream& stream() { return stream_; }

 private:
  const LogSeverity severity_;
  const char* const file_;
  const int line_;
  std::ostringstream stream_;
};

inline constexpr LogSeverity kSeverityINFO = LogSeverity::kInfo;
inline constexpr LogSeverity kSeverityWARNING = LogSeverity::kWarning;
inline constexpr LogSeverity kSeverityERROR = LogSeverity::kError;

}  // namespace internal
}  // namespace muster

#define LOG(severity)                                                  \
  ::muster::internal::LogLine(::muster::internal::kSeverity##severity, \
                              __FILE__, __LINE__)                      \
      .stream()

#endif  // COMMON_CORE_SYSTEM_LOG_H_
