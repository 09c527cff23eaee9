#include "common/core/base/log.h"

#include <unistd.h>

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace muster {
namespace {

struct Prefix {
  absl::Mutex mutex;
  std::string text ABSL_GUARDED_BY(mutex);
};

// Never destroyed: threads may log while the process ends.
Prefix& GlobalPrefix() {
  static Prefix* const prefix = new Prefix;
  return *prefix;
}

std::atomic<LogSeverity> minimum_severity{LogSeverity::kInfo};

absl::string_view BaseName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

void WriteAll(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;  // There is nowhere to report it.
    text.remove_prefix(written);
  }
}

}  // namespace

void SetLogPrefix(absl::string_view prefix) {
  Prefix& global = GlobalPrefix();
  absl::MutexLock lock(&global.mutex);
  global.text = prefix.empty() ? "" : absl::StrCat(prefix, ": ");
}

void SetMinimumLogSeverity(LogSeverity severity) {
  minimum_severity.store(severity, std::memory_order_relaxed);
}

namespace internal {

LogLine::LogLine(LogSeverity severity, const char* file, int line)
    : severity_(severity), file_(file), line_(line) {}

LogLine::~LogLine() {
  if (severity_ < minimum_severity.load(std::memory_order_relaxed)) return;
  std::string prefix;
  {
    Prefix& global = GlobalPrefix();
    absl::MutexLock lock(&global.mutex);
    prefix = global.text;
  }
  const char letter = "IWE"[static_cast<int>(severity_)];
  const std::string source =
      severity_ == LogSeverity::kError
          ? absl::StrCat(" ", BaseName(file_), ":", line_)
          : "";
  WriteAll(absl::StrCat(
      std::string(1, letter),
      absl::FormatTime("%m%d %H:%M:%E3S", absl::Now(), absl::LocalTimeZone()),
      source, "] ", prefix, stream_.str(), "\n"));
}

}  // namespace internal
}  // namespace muster
