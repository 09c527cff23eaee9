#include "common/learn/train/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

absl::Status FailedTo(absl::string_view what, absl::string_view path) {
  return absl::InternalError(
      absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(errno)));
}

absl::Status WriteAndSync(int file, absl::string_view content,
                          absl::string_view path) {
  while (!content.empty()) {
    const ssize_t written = write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FailedTo("write", path);
    content.remove_prefix(written);
  }
  return fsync(file) == 0 ? absl::OkStatus() : FailedTo("sync", path);
}

// Makes the rename itself last.
absl::Status SyncFolder(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return FailedTo("open folder", folder);
  const absl::Cleanup close_folder = [&] { close(descriptor); };
  return fsync(descriptor) == 0 ? absl::OkStatus()
                                : FailedTo("sync folder", folder);
}

}  // namespace

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view content) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder.push_back('.');
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::InternalError(
        absl::StrCat("cannot make folder ", folder, ": ", error.message()));
  }
  const std::string beside = absl::StrCat(path, ".", getpid(), ".tmp");
  absl::Cleanup remove_beside = [&] { std::remove(beside.c_str()); };
  {
    const int file =
        open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) return FailedTo("write", beside);
    const absl::Cleanup close_file = [&] { close(file); };
    RETURN_IF_ERROR(WriteAndSync(file, content, beside));
  }
  if (std::rename(beside.c_str(), path.c_str()) != 0) {
    return FailedTo("rename to", path);
  }
  std::move(remove_beside).Cancel();
  return SyncFolder(folder);
}

}  // namespace muster
