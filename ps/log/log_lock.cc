#include "ps/log/log_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/io/storage/disk.h"

namespace muster {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(20);

// File systems that other machines may write to. Their locks may not reach
// those machines.
bool IsShared(int64_t type) {
  switch (type) {
    case 0x6969:      // NFS
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB 2
    case 0x517B:      // SMB
    case 0x65735546:  // FUSE
    case 0x0BD00BD0:  // Lustre
    case 0x00C36400:  // Ceph
    case 0x47504653:  // GPFS
    case 0x5346414F:  // AFS
    case 0x01021997:  // 9P
    case 0x19830326:  // BeeGFS
      return true;
    default:
      return false;
  }
}

void Pause() {
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  bool never = false;
  Clock::Real()->AwaitWithDeadline(&mutex, absl::Condition(&never),
                                   Clock::Real()->Now() + kPause);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogLock>> LogLock::Take(
    const std::string& folder, absl::Duration timeout) {
  RETURN_IF_ERROR(Disk::Real()->MakeFolder(folder));
  struct statfs file_system = {};
  if (statfs(folder.c_str(), &file_system) != 0) {
    return absl::ErrnoToStatus(errno, folder);
  }
  if (IsShared(static_cast<uint32_t>(file_system.f_type))) {
    return absl::UnimplementedError(
        absl::StrCat(folder, " is not on a local file system"));
  }
  const std::string path = JoinPath(folder, "lock");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  std::unique_ptr<LogLock> lock(new LogLock(fd));
  const absl::Time deadline = Clock::Real()->Now() + timeout;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return absl::ErrnoToStatus(errno, path);
    }
    if (Clock::Real()->Now() >= deadline) {
      return absl::FailedPreconditionError(
          absl::StrCat("another process has locked ", path, " for more than ",
                       absl::FormatDuration(timeout)));
    }
    Pause();
  }
  return lock;
}

LogLock::~LogLock() { close(fd_); }

}  // namespace muster
