#include "deploy/musterctl/exchange_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/io/storage/disk.h"
#include "common/io/tar/tar_stream.h"
#include "deploy/musterctl/standard_streams.h"

namespace muster {
namespace {

// Between two looks for new files.
constexpr absl::Duration kScanInterval = absl::Milliseconds(5);
constexpr int64_t kExchangedBytesMax = int64_t{8} << 30;

// Changes when a file is replaced: the time of its content in nanoseconds, its
// number in the file system, and its size.
using FileVersion = std::tuple<int64_t, uint64_t, int64_t>;

std::optional<FileVersion> VersionOf(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  return FileVersion(
      int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
      status.st_ino, status.st_size);
}

class Exchange {
 public:
  Exchange(std::string folder, const std::vector<std::string>& names)
      : folder_(std::move(folder)), names_(names.begin(), names.end()) {}

  absl::Status Run() {
    RETURN_IF_ERROR(disk_->MakeFolder(folder_));
    absl::Status sent;
    std::thread sender([&] {
      while (sent.ok() &&
             !has_ended_.WaitForNotificationWithTimeout(kScanInterval)) {
        sent = SendNewFiles();
      }
    });
    const absl::Status received = ReceiveFiles();
    has_ended_.Notify();
    sender.join();
    RETURN_IF_ERROR(received);
    return sent;
  }

 private:
  absl::Status ReceiveFiles() ABSL_LOCKS_EXCLUDED(mutex_) {
    TarReader reader(ReadFromStandardInput);
    while (true) {
      const absl::StatusOr<std::optional<TarFile>> file = reader.Next();
      if (reader.has_ended_between_files()) return absl::OkStatus();
      RETURN_IF_ERROR(file.status());
      if (!file->has_value()) return absl::OkStatus();
      if ((*file)->size_bytes > kExchangedBytesMax) {
        return absl::ResourceExhaustedError((*file)->name);
      }
      std::string content(static_cast<size_t>((*file)->size_bytes), '\0');
      RETURN_IF_ERROR(reader.Read(absl::MakeSpan(
          reinterpret_cast<uint8_t*>(content.data()), content.size())));
      const std::string path = JoinPath(folder_, (*file)->name);
      RETURN_IF_ERROR(disk_->MakeFolder(FolderOf(path)));
      absl::MutexLock lock(&mutex_);
      RETURN_IF_ERROR(ReplaceFileUnsynced(disk_, path, content));
      if (const auto version = VersionOf(path)) versions_[path] = *version;
    }
  }

  // Writes the files that are new or were replaced to standard output.
  absl::Status SendNewFiles() ABSL_LOCKS_EXCLUDED(mutex_) {
    for (const auto& [version, path] : NewFiles()) {
      const absl::StatusOr<std::string> content =
          ReadFile(disk_, path, kExchangedBytesMax);
      if (absl::IsNotFound(content.status())) continue;  // It was removed.
      RETURN_IF_ERROR(content.status());
      RETURN_IF_ERROR(
          writer_.Begin({.name = path.substr(folder_.size() + 1),
                         .size_bytes = static_cast<int64_t>(content->size())}));
      RETURN_IF_ERROR(writer_.Append(absl::MakeSpan(
          reinterpret_cast<const uint8_t*>(content->data()), content->size())));
      RETURN_IF_ERROR(writer_.CompleteFile());
    }
    return absl::OkStatus();
  }

  std::vector<std::pair<FileVersion, std::string>> NewFiles()
      ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::pair<FileVersion, std::string>> files;
    absl::MutexLock lock(&mutex_);
    std::error_code error;  // Folders that are removed meanwhile have no files.
    for (std::filesystem::recursive_directory_iterator entry(folder_, error),
         end;
         !error && entry != end; entry.increment(error)) {
      const std::string path = entry->path().string();
      const std::optional<FileVersion> version = VersionOf(path);
      if (!version.has_value() || !names_.contains(BaseName(path))) continue;
      const auto known = versions_.find(path);
      if (known != versions_.end() && known->second == *version) continue;
      versions_[path] = *version;
      files.emplace_back(*version, path);
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  const std::string folder_;
  const std::set<std::string, std::less<>> names_;  // Of files that are sent.
  Disk* const disk_ = Disk::Real();
  TarWriter writer_{WriteToStandardOutput};
  absl::Notification has_ended_;

  absl::Mutex mutex_;
  // Of the files that the other process has or gets.
  std::map<std::string, FileVersion> versions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status ExchangeFiles(const std::string& folder,
                           const std::vector<std::string>& names) {
  Exchange exchange(std::string(absl::StripSuffix(folder, "/")), names);
  return exchange.Run();
}

}  // namespace muster
