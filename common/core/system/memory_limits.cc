#include "common/core/system/memory_limits.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
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

absl::Status CheckAddressSpace(size_t bytes, absl::string_view what) {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return absl::OkStatus();
  }
  void* const range = mmap(nullptr, bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range != MAP_FAILED) {
    munmap(range, bytes);
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("Address space is limited to ", limit.rlim_cur / 1024,
                   " KiB (ulimit -v), and less than the ", bytes / 1024,
                   " KiB that ", what, " may need are left; raise the limit"));
}

namespace {

// Returns the number in an environment variable; 0 if the variable has none, or
// one that is too large for a number of MiB.
size_t NumberIn(const char* variable) {
  const char* const text = getenv(variable);
  uint32_t number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number : 0;
}

// At many sites Slurm counts memory without limiting that of tasks. It counts
// by node or by processor. Memory "0" means all memory of the node.
size_t SlurmMemoryBytes() {
  size_t mebibytes = NumberIn("SLURM_MEM_PER_NODE");
  if (mebibytes == 0) {
    mebibytes = NumberIn("SLURM_MEM_PER_CPU") * NumberIn("SLURM_CPUS_ON_NODE");
  }
  return mebibytes == 0 || mebibytes > SIZE_MAX >> 20 ? SIZE_MAX
                                                      : mebibytes << 20;
}

}  // namespace

size_t AvailableMemoryBytes() {
  size_t bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  bytes = std::min({bytes, MemoryGroup().LimitBytes(), SlurmMemoryBytes()});
  rlimit address_space;
  if (getrlimit(RLIMIT_AS, &address_space) == 0 &&
      address_space.rlim_cur != RLIM_INFINITY) {
    bytes = std::min<size_t>(bytes, address_space.rlim_cur);
  }
  return bytes;
}

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
