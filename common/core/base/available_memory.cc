#include "common/core/base/available_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

// The number in the first line of a file; kUnlimited for "max" and for a file
// that cannot be read.
size_t LimitIn(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  uint64_t limit = 0;
  if (!std::getline(file, line) || !absl::SimpleAtoi(line, &limit)) {
    return kUnlimited;
  }
  return limit;
}

// The least of the limits of `group` ("/a/b") and of the groups above it.
size_t LeastLimit(const std::string& hierarchy, std::string group,
                  absl::string_view file) {
  size_t limit = kUnlimited;
  while (true) {
    limit = std::min(limit, LimitIn(absl::StrCat(hierarchy, group, "/", file)));
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) return limit;
    group.resize(slash);
  }
}

}  // namespace

namespace internal {

size_t ControlGroupMemoryLimitBytes(const std::string& root) {
  const std::string mount = absl::StrCat(root, "/sys/fs/cgroup");
  size_t limit = kUnlimited;
  std::ifstream groups(absl::StrCat(root, "/proc/self/cgroup"));
  // Lines are "hierarchy:controllers:path"; version 2 has no controllers.
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (fields[1].empty()) {
      limit = std::min(limit, LeastLimit(mount, fields[2], "memory.max"));
    } else if (absl::StrContains(absl::StrCat(",", fields[1], ","),
                                 ",memory,")) {
      limit = std::min(limit, LeastLimit(mount + "/memory", fields[2],
                                         "memory.limit_in_bytes"));
    }
  }
  return limit;
}

}  // namespace internal

size_t AvailableMemoryBytes() {
  size_t bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  bytes = std::min(bytes, internal::ControlGroupMemoryLimitBytes(""));
  rlimit address_space;
  if (getrlimit(RLIMIT_AS, &address_space) == 0 &&
      address_space.rlim_cur != RLIM_INFINITY) {
    bytes = std::min<size_t>(bytes, address_space.rlim_cur);
  }
  return bytes;
}

}  // namespace muster
