#include "common/core/system/memory_group.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/core/system/small_file.h"

namespace muster {
namespace {

constexpr size_t kUnlimitedBytes = std::numeric_limits<size_t>::max();

// Returns the number in the first line of a file; kUnlimitedBytes for "max" and
// for a file that cannot be read.
size_t LimitIn(const std::string& path) {
  const std::string text = ReadKernelFile(path).value_or("");
  uint64_t limit = 0;
  const std::string line = text.substr(0, text.find('\n'));
  return absl::SimpleAtoi(line, &limit) ? limit : kUnlimitedBytes;
}

// Returns the number after "oom_kill " in a file.
std::optional<int64_t> KillCountIn(const std::string& path) {
  const std::string lines = ReadKernelFile(path).value_or("");
  for (absl::string_view text : absl::StrSplit(lines, '\n')) {
    int64_t count = 0;
    if (absl::ConsumePrefix(&text, "oom_kill ") &&
        absl::SimpleAtoi(text, &count)) {
      return count;
    }
  }
  return std::nullopt;
}

}  // namespace

MemoryGroup::MemoryGroup(const std::string& root) {
  const std::string mount = absl::StrCat(root, "/sys/fs/cgroup");
  const std::string groups =
      ReadKernelFile(absl::StrCat(root, "/proc/self/cgroup")).value_or("");
  // Lines are "hierarchy:controllers:path"; version 2 has no controllers, and
  // limits memory only if version 1 does not.
  for (const absl::string_view line :
       absl::StrSplit(groups, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const bool limits_memory =
        absl::StrContains(absl::StrCat(",", fields[1], ","), ",memory,");
    if (!limits_memory && !fields[1].empty()) continue;
    name_ = std::string(absl::StripSuffix(fields[2], "/"));
    hierarchy_ = limits_memory ? mount + "/memory" : mount;
    limit_file_ = limits_memory ? "memory.limit_in_bytes" : "memory.max";
    event_file_ = limits_memory ? "memory.oom_control" : "memory.events";
    if (limits_memory) return;
  }
}

std::vector<std::string> MemoryGroup::Folders() const {
  std::vector<std::string> folders;
  for (std::string name = name_; !hierarchy_.empty();) {
    folders.push_back(absl::StrCat(hierarchy_, name, "/"));
    const size_t slash = name.rfind('/');
    if (slash == std::string::npos) break;
    name.resize(slash);
  }
  return folders;
}

size_t MemoryGroup::LimitBytes() const {
  size_t limit = kUnlimitedBytes;
  for (const std::string& folder : Folders()) {
    limit = std::min(limit, LimitIn(folder + limit_file_));
  }
  return limit;
}

int64_t MemoryGroup::KillCount() const {
  // In a container, /proc/self/cgroup may contain the host's name of the group,
  // while the folder of the group is mounted at the top.
  for (const std::string& folder : Folders()) {
    if (const auto count = KillCountIn(folder + event_file_)) return *count;
  }
  return 0;
}

}  // namespace muster
