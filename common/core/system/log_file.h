#ifndef COMMON_CORE_SYSTEM_LOG_FILE_H_
#define COMMON_CORE_SYSTEM_LOG_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace muster {

// Appends what was logged so far, up to 64 KiB, and every later line also to a
// file. While its disk stands still, the file lacks lines beyond 64 KiB. When
// the file would grow beyond `bytes_max` bytes, it is renamed to "PATH.1"; 0 is
// no bound. Does nothing if the log has a file already. Thread-safe.
//   any  the file cannot be opened; nothing changes
absl::Status WriteLogToFile(const std::string& path, int64_t bytes_max);

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_LOG_FILE_H_
