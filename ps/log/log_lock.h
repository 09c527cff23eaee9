#ifndef PS_LOG_LOG_LOCK_H_
#define PS_LOG_LOG_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

// The right to write the log of a folder. The kernel takes it back when the
// process ends, however it ends. A process that is suspended keeps it.
class LogLock {
 public:
  // Creates the folder. Waits for up to `timeout` while another process has the
  // lock, because a killed process may take a moment to end.
  //   kUnimplemented       the folder is not on a local file system: another
  //                        machine could write there
  //   kFailedPrecondition  another process has the lock
  //   others               as absl::ErrnoToStatus()
  static absl::StatusOr<std::unique_ptr<LogLock>> Take(
      const std::string& folder, absl::Duration timeout);

  ~LogLock();
  LogLock(const LogLock&) = delete;
  LogLock& operator=(const LogLock&) = delete;

 private:
  explicit LogLock(int fd) : fd_(fd) {}

  const int fd_;
};

}  // namespace muster

#endif  // PS_LOG_LOG_LOCK_H_
