#include "tests/faults/limited_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/system/testing/await_true.h"

namespace muster {
namespace {

constexpr char kMount[] = "/sys/fs/cgroup";

absl::Status WriteTo(const std::string& path, int64_t number) {
  const std::string text = absl::StrCat(number);
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool is_written = file >= 0 && write(file, text.data(), text.size()) ==
                                           static_cast<ssize_t>(text.size());
  const int error = errno;
  if (file >= 0) close(file);
  if (is_written) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::ErrnoToStatus(error, path).message());
}

// Returns the folder of this process's group in the hierarchy of "memory"
// (version 1) or of "" (version 2); empty if there is none.
std::string OwnFolder(const std::string& controller) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() == 3 && fields[1] == controller) {
      return absl::StrCat(kMount, controller.empty() ? "" : "/", controller,
                          absl::StripSuffix(fields[2], "/"));
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<LimitedMemory>> LimitedMemory::Create(
    const std::string& name, int64_t mebibytes) {
  std::string own_folder = OwnFolder("memory");
  const bool is_version_two = own_folder.empty();
  if (is_version_two) own_folder = OwnFolder("");
  // In version 2, a group that has processes cannot limit groups below it.
  // Therefore the new group is a sibling of the group of this process.
  const std::string parent =
      is_version_two ? own_folder.substr(0, own_folder.rfind('/')) : own_folder;
  const std::string folder =
      absl::StrCat(parent, "/muster-", getpid(), "-", name);
  if (mkdir(folder.c_str(), 0755) != 0) {
    return absl::PermissionDeniedError(
        absl::ErrnoToStatus(errno, absl::StrCat("no control group ", folder))
            .message());
  }
  std::unique_ptr<LimitedMemory> result(
      new LimitedMemory(own_folder, folder, is_version_two));
  RETURN_IF_ERROR(WriteTo(
      folder + (is_version_two ? "/memory.max" : "/memory.limit_in_bytes"),
      mebibytes << 20));
  // Without swap the file does not exist.
  WriteTo(folder + (is_version_two ? "/memory.swap.max" : "/memory.swappiness"),
          0)
      .IgnoreError();
  return result;
}

LimitedMemory::~LimitedMemory() {
  // An ended process leaves its group shortly afterwards.
  const bool is_gone = AwaitTrue(
      [this] { return rmdir(folder_.c_str()) == 0 || errno != EBUSY; });
  if (!is_gone) LOG(WARNING) << folder_ << " still has processes";
}

std::vector<std::string> LimitedMemory::Prefix() const {
  return {"/bin/sh", "-c", "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"",
          folder_};
}

std::string LimitedMemory::OutsideFile() const {
  return own_folder_ + "/cgroup.procs";
}

int64_t LimitedMemory::KillCount() const {
  std::ifstream file(
      folder_ + (is_version_two_ ? "/memory.events" : "/memory.oom_control"));
  for (std::string line; std::getline(file, line);) {
    absl::string_view text = line;
    int64_t count = 0;
    if (absl::ConsumePrefix(&text, "oom_kill ") &&
        absl::SimpleAtoi(text, &count)) {
      return count;
    }
  }
  return 0;
}

}  // namespace muster
