#ifndef COMMON_CORE_SYSTEM_SMALL_FILE_H_
#define COMMON_CORE_SYSTEM_SMALL_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

// Files that are read as a whole: files that people write by hand (jobs, flags,
// tokens, certificates, vocabularies), and files of the kernel. Data and
// checkpoints are read by common/io/storage.

struct SmallFileLimits {
  int64_t bytes_max = int64_t{16} << 20;
  absl::Duration timeout = absl::Seconds(10);
};

// Reads a file, a pipe or a device to its end. If the file system does not
// respond, the call returns after the timeout, and a thread remains blocked.
// Errors name the path.
//   kNotFound          no such file
//   kPermissionDenied  the process may not read it
//   kInvalidArgument   it is a folder, or has more than bytes_max bytes
//   kDeadlineExceeded  reading does not end within the timeout, as for a pipe
//                      to which no process writes
//   others             the system's error when opening or reading it
absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          const SmallFileLimits& limits = {});

// Reads a file of /proc or /sys in the calling thread: the kernel provides its
// content without delay.
//   as ReadSmallFile(), except kDeadlineExceeded
absl::StatusOr<std::string> ReadKernelFile(const std::string& path);

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_SMALL_FILE_H_
