#include "common/core/system/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace muster {

RotatingLog::~RotatingLog() {
  if (fd_ >= 0) close(fd_);
}

absl::Status RotatingLog::Open() {
  if (fd_ >= 0) return absl::OkStatus();
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) return absl::ErrnoToStatus(errno, path_);
  struct stat found;
  size_bytes_ = fstat(fd_, &found) == 0 ? found.st_size : 0;
  return absl::OkStatus();
}

void RotatingLog::Write(absl::string_view bytes) {
  const int64_t added = static_cast<int64_t>(bytes.size());
  if (bytes_max_ > 0 && size_bytes_ > 0 && size_bytes_ + added > bytes_max_) {
    Rotate();
  }
  const ssize_t written = write(fd_, bytes.data(), bytes.size());
  if (written > 0) size_bytes_ += written;
}

void RotatingLog::Rotate() {
  // If rotation fails, later lines are appended to the old file.
  if (rename(path_.c_str(), absl::StrCat(path_, ".1").c_str()) != 0) return;
  const int next =
      open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (next < 0) return;
  close(fd_);
  fd_ = next;
  size_bytes_ = 0;
}

}  // namespace muster
