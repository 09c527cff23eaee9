#include "common/compute/programs/compiled/program_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/programs/compiled/custom_calls.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/file_descriptor.h"
#include "common/core/system/log.h"
#include "common/core/system/small_file.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/sha256.h"

namespace muster::internal {
namespace {

constexpr char kSuffix[] = ".program";
constexpr size_t kHashBytes = 64;  // Sha256Of() of the rest of a file.
constexpr absl::Duration kPollInterval = absl::Milliseconds(20);

// True if only this user, or root, can have written the file or folder.
bool IsTrusted(const struct stat& status) {
  const bool is_own = status.st_uid == geteuid() || status.st_uid == 0;
  return is_own && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// What code for the processor of this machine depends on.
std::string Processor() {
  const absl::StatusOr<std::string> text = ReadKernelFile("/proc/cpuinfo");
  if (!text.ok()) return "";
  std::string found;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (line.empty()) break;  // The first processor has ended.
    for (const absl::string_view name : {"model name", "flags", "Features"}) {
      if (absl::StartsWith(line, name)) absl::StrAppend(&found, line, "\n");
    }
  }
  return found;
}

std::string KeyOf(const PjrtClient& client, absl::string_view stablehlo,
                  int thread_count) {
  struct stat plugin = {};
  stat(client.plugin().path().c_str(), &plugin);
  Sha256 hash;
  hash.Add(absl::StrCat(
      client.plugin().path(), "\n", plugin.st_size, "\n", plugin.st_mtim.tv_sec,
      "\n", plugin.st_mtim.tv_nsec, "\n", client.platform_name(), "\n",
      client.platform_version(), "\n", thread_count, "\n", Processor(), "\n",
      PermittedCustomCallsOfEnvironment(), "\n"));
  hash.Add(stablehlo);
  return hash.Finish();
}

// The lock of one program, so that one process compiles it. The system releases
// the lock when the process ends.
class ProgramLock {
 public:
  explicit ProgramLock(std::string path) : path_(std::move(path)) {}
  ~ProgramLock() {
    if (is_held_) unlink(path_.c_str());
  }

  // Waits for other processes, for `wait_max` at most.
  void Lock(absl::Duration wait_max) {
    fd_ = FileDescriptor(
        open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd_.is_open()) return;
    Clock* const clock = Clock::Real();
    const absl::Time deadline = clock->Now() + wait_max;
    bool has_logged = false;
    while (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK || clock->Now() >= deadline) return;
      if (!has_logged) {
        has_logged = true;
        LOG(INFO) << "waiting for the process that compiles a program and has "
                  << "locked " << path_ << ", for "
                  << absl::FormatDuration(wait_max) << " at most";
      }
      absl::Mutex mutex;
      const bool never = false;
      absl::MutexLock lock(&mutex);
      clock->AwaitWithDeadline(&mutex, absl::Condition(&never),
                               clock->Now() + kPollInterval);
    }
    is_held_ = true;
  }

 private:
  const std::string path_;
  FileDescriptor fd_;
  bool is_held_ = false;
};

}  // namespace

std::optional<ProgramCache> ProgramCache::OfEnvironment() {
  std::string folder;
  if (const char* const given = std::getenv(kCacheVariable); given != nullptr) {
    folder = given;
  } else if (const char* const home = std::getenv("HOME"); home != nullptr) {
    folder = JoinPath(home, ".cache/muster/programs");
  }
  if (folder.empty()) return std::nullopt;
  absl::StatusOr<ProgramCache> cache = Open(folder);
  if (cache.ok()) return *std::move(cache);
  LOG(INFO) << "compiled programs are not kept: " << cache.status().message();
  return std::nullopt;
}

absl::StatusOr<ProgramCache> ProgramCache::Open(
    const std::string& folder, const ProgramCacheOptions& options) {
  std::error_code error;
  if (std::filesystem::create_directories(folder, error)) {
    chmod(folder.c_str(), 0700);  // Whatever the umask is.
  }
  struct stat status = {};
  if (stat(folder.c_str(), &status) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot use ", folder));
  }
  if (!IsTrusted(status)) {
    return absl::PermissionDeniedError(
        absl::StrCat(folder,
                     " belongs to another user, or others may write "
                     "it, and the code in it is run"));
  }
  return ProgramCache(folder, options);
}

std::unique_ptr<PjrtExecutable> ProgramCache::Load(
    const PjrtClient& client, const std::string& path) const {
  struct stat status = {};
  if (lstat(path.c_str(), &status) != 0) return nullptr;
  const bool is_usable = S_ISREG(status.st_mode) && IsTrusted(status);
  if (!is_usable) return nullptr;
  const absl::StatusOr<std::string> file =
      ReadFile(Disk::Real(), path, options_.bytes_max);
  if (!file.ok() || file->size() < kHashBytes) return nullptr;
  const absl::string_view code = absl::string_view(*file).substr(kHashBytes);
  if (!absl::StartsWith(*file, Sha256Of(code))) {
    LOG(WARNING) << path << " is damaged; the program is compiled again";
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<PjrtExecutable>> executable =
      client.Load(code);
  if (!executable.ok()) {
    LOG(WARNING) << path << " cannot be loaded (" << executable.status()
                 << "); the program is compiled again";
    return nullptr;
  }
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // The file is in use.
  return *std::move(executable);
}

void ProgramCache::Save(const PjrtExecutable& executable,
                        const std::string& path) const {
  const absl::StatusOr<std::string> code = executable.Serialize();
  if (!code.ok()) return;  // The plugin cannot do this.
  const absl::Status saved = ReplaceFileUnsynced(
      Disk::Real(), path, absl::StrCat(Sha256Of(*code), *code));
  if (!saved.ok()) {
    LOG(WARNING) << "a compiled program is not kept: " << saved.message();
    return;
  }
  chmod(path.c_str(), 0600);
  RemoveOldFiles();
}

void ProgramCache::RemoveOldFiles() const {
  struct File {
    std::filesystem::file_time_type time;
    std::filesystem::path path;
    int64_t bytes;
  };
  std::vector<File> files;
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder_, error)) {
    if (entry.path().extension() != kSuffix) continue;
    File file{entry.last_write_time(error), entry.path(),
              static_cast<int64_t>(entry.file_size(error))};
    if (error) continue;  // Another process has removed the file.
    bytes += file.bytes;
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.time < b.time; });
  for (const File& file : files) {
    if (bytes <= options_.bytes_max) return;
    std::filesystem::remove(file.path, error);
    bytes -= file.bytes;
  }
}

absl::StatusOr<std::unique_ptr<PjrtExecutable>> ProgramCache::Compile(
    const PjrtClient& client, absl::string_view stablehlo,
    int thread_count) const {
  const std::string key = KeyOf(client, stablehlo, thread_count);
  const std::string path = JoinPath(folder_, absl::StrCat(key, kSuffix));
  if (auto executable = Load(client, path); executable != nullptr) {
    return executable;
  }
  ProgramLock lock(JoinPath(folder_, absl::StrCat(key, ".lock")));
  lock.Lock(options_.wait_max);
  // Another process may have compiled the program in the meantime.
  if (auto executable = Load(client, path); executable != nullptr) {
    return executable;
  }
  ASSIGN_OR_RETURN(auto executable, CompileChecked(client, stablehlo));
  Save(*executable, path);
  return executable;
}

}  // namespace muster::internal
