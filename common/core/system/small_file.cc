#include "common/core/system/small_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/core/system/file_descriptor.h"

namespace muster {
namespace {

constexpr size_t kPieceBytes = size_t{64} << 10;

absl::Status SystemError(const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
}

absl::Status TooLarge(const std::string& path, int64_t bytes_max) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read ", path, ": it has more than ", bytes_max,
                   " bytes, which is the most that is read of such a file"));
}

absl::StatusOr<std::string> ReadNow(const std::string& path,
                                    int64_t bytes_max) {
  const FileDescriptor file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat status = {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) {
    return SystemError(path);
  }
  if (S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot read ", path, ": it is a folder; expected a file"));
  }
  if (S_ISREG(status.st_mode) && status.st_size > bytes_max) {
    return TooLarge(path, bytes_max);
  }
  std::string content;
  while (true) {
    const size_t size = content.size();
    content.resize(size + kPieceBytes);
    const ssize_t count = read(file.get(), content.data() + size, kPieceBytes);
    if (count < 0 && errno != EINTR) return SystemError(path);
    content.resize(size + static_cast<size_t>(count < 0 ? 0 : count));
    if (count == 0) return content;
    if (static_cast<int64_t>(content.size()) > bytes_max) {
      return TooLarge(path, bytes_max);
    }
  }
}

// State shared by the reading thread and the waiting thread.
struct Reading {
  absl::Mutex mutex;
  bool has_ended ABSL_GUARDED_BY(mutex) = false;
  absl::StatusOr<std::string> content ABSL_GUARDED_BY(mutex);
};

// Reads in a new thread. Blocks all signals there: they are for the threads of
// the program.
void StartReading(std::shared_ptr<Reading> reading, std::string path,
                  int64_t bytes_max) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([reading = std::move(reading), path = std::move(path),
               bytes_max] {
    absl::StatusOr<std::string> content = ReadNow(path, bytes_max);
    absl::MutexLock lock(&reading->mutex);
    reading->content = std::move(content);
    reading->has_ended = true;
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          const SmallFileLimits& limits) {
  const auto reading = std::make_shared<Reading>();
  StartReading(reading, path, limits.bytes_max);
  Clock* const clock = Clock::Real();
  absl::MutexLock lock(&reading->mutex);
  if (clock->AwaitWithDeadline(&reading->mutex,
                               absl::Condition(&reading->has_ended),
                               clock->Now() + limits.timeout)) {
    return std::move(reading->content);
  }
  return absl::DeadlineExceededError(
      absl::StrCat("cannot read ", path, ": reading did not finish within ",
                   absl::FormatDuration(limits.timeout),
                   "; expected a file, or a pipe to which a process writes"));
}

absl::StatusOr<std::string> ReadKernelFile(const std::string& path) {
  return ReadNow(path, SmallFileLimits().bytes_max);
}

}  // namespace muster
