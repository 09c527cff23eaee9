#ifndef COMMON_CORE_SYSTEM_LOG_FILE_H_
#define COMMON_CORE_SYSTEM_LOG_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace muster {

// Appends the lines that were logged so far, up to 64 KiB, and every later line
// also to a file. While its disk does not respond, up to 64 KiB of lines are
// kept and further lines are missing from the file. When the file would grow
// beyond `bytes_max` bytes, it is renamed to "PATH.1"; 0 means no limit. Does
// nothing if the log has a file already. Thread-safe.
//   any  the file cannot be opened; nothing changes
absl::Status WriteLogToFile(const std::string& path, int64_t bytes_max);

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_LOG_FILE_H_
