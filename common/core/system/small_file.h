#ifndef COMMON_CORE_SYSTEM_SMALL_FILE_H_
#define COMMON_CORE_SYSTEM_SMALL_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

// Files that are read as a whole: what people write by hand (jobs, flags,
// tokens, certificates, vocabularies), and what the kernel says. Data and
// checkpoints are read by common/io/storage.

struct SmallFileLimits {
  int64_t bytes_max = int64_t{16} << 20;
  absl::Duration timeout = absl::Seconds(10);
};

// Reads a file, a pipe or a device to its end. The file system may stand still:
// after the timeout the call returns, and a thread stays with the file. Errors
// name the path.
//   kNotFound          no such file
//   kPermissionDenied  it may not be read
//   kInvalidArgument   it is a folder, or has more than bytes_max bytes
//   kDeadlineExceeded  it does not end within the timeout, as a pipe to which
//   no
//                      process writes
//   others             the system's error at opening or reading it
absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          const SmallFileLimits& limits = {});

// Reads a file of /proc or /sys, which the kernel makes at once, in this
// thread.
//   as ReadSmallFile(), but for the timeout
absl::StatusOr<std::string> ReadKernelFile(const std::string& path);

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_SMALL_FILE_H_
