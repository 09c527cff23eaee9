#include "common/core/system/confined_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

// Unset if reads are not confined.
std::optional<std::vector<std::string>>& Folders() {
  static auto* const folders = new std::optional<std::vector<std::string>>;
  return *folders;
}

// Returns `path` with symbolic links resolved, as far as it exists; empty if
// resolving fails.
std::string Canonical(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return "";
  const std::filesystem::path canonical =
      std::filesystem::weakly_canonical(absolute, error);
  return error ? "" : canonical.string();
}

// Opens a file below `root`. Does not follow a link that replaced a folder
// after its path was resolved.
int OpenBelow(const std::string& root, const std::string& relative) {
  const int folder = open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return -1;
  open_how how = {};
  how.flags = kFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  int file = static_cast<int>(
      syscall(SYS_openat2, folder, relative.c_str(), &how, sizeof(how)));
  // Linux before 5.6 and some sandboxes lack the call.
  if (file < 0 && (errno == ENOSYS || errno == EPERM)) {
    file = openat(folder, relative.c_str(), kFlags | O_NOFOLLOW);
  }
  const int error = errno;
  close(folder);
  errno = error;
  return file;
}

}  // namespace

void ConfineReads(std::vector<std::string> folders) {
  Folders() = std::move(folders);
}

absl::StatusOr<int> OpenToRead(const std::string& path) {
  if (!Folders().has_value()) return open(path.c_str(), kFlags);
  const std::string canonical = Canonical(path);
  for (const std::string& folder : *Folders()) {
    if (!absl::StartsWith(folder, "/")) continue;  // A URL.
    std::string root = Canonical(folder);
    if (root.empty() || canonical.empty()) continue;
    if (!absl::EndsWith(root, "/")) root += '/';
    if (absl::StartsWith(canonical, root) && canonical != root) {
      return OpenBelow(root, canonical.substr(root.size()));
    }
  }
  return OutsideOfConfinedFolders(path);
}

const std::optional<std::vector<std::string>>& ConfinedFolders() {
  return Folders();
}

absl::Status OutsideOfConfinedFolders(const std::string& path) {
  return absl::PermissionDeniedError(absl::StrCat(
      path,
      " is outside of the folders that this task may read for other processes "
      "(",
      Folders()->empty() ? "none" : absl::StrJoin(*Folders(), ", "),
      "); start it with --data_root=FOLDER"));
}

}  // namespace muster
