#ifndef COMMON_CORE_SYSTEM_LOG_FILE_H_
#define COMMON_CORE_SYSTEM_LOG_FILE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// Appends the lines that were logged so far, up to 64 KiB, and every later line
// also to a file. While its disk does not respond, up to 64 KiB of lines are
// kept and further lines are missing from the file. When the file would grow
// beyond `bytes_max` bytes, it is renamed to "PATH.1"; 0 means no limit. Does
// nothing if the log has a file already. Thread-safe.
//   any  the file cannot be opened; nothing changes
absl::Status WriteLogToFile(const std::string& path, int64_t bytes_max);

// A log file of bounded size. When it would grow beyond `bytes_max`, it is
// renamed to "PATH.1", in place of an earlier one, and a new file is created.
// The two files contain at least the newest `bytes_max` bytes, and at most
// twice as many.
//
// Not thread-safe.
class RotatingLog {
 public:
  // `bytes_max` 0 means no limit.
  RotatingLog(std::string path, int64_t bytes_max)
      : path_(std::move(path)), bytes_max_(bytes_max) {}
  ~RotatingLog();

  RotatingLog(const RotatingLog&) = delete;
  RotatingLog& operator=(const RotatingLog&) = delete;

  // Opens the file for appending. Does nothing if it is open.
  //   any  the file cannot be opened
  absl::Status Open();

  // Appends `bytes`. Errors are ignored: a log that cannot be written must not
  // end the job.
  void Write(absl::string_view bytes);

 private:
  void Rotate();

  const std::string path_;
  const int64_t bytes_max_;
  int fd_ = -1;
  int64_t size_bytes_ = 0;
};

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_LOG_FILE_H_
