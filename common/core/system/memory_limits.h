#ifndef COMMON_CORE_SYSTEM_MEMORY_LIMITS_H_
#define COMMON_CORE_SYSTEM_MEMORY_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// Checks that this process can map `bytes` more bytes. Call it before a library
// that does not check its allocations. `what` names the library in the error:
// "oneDNN". Costs nothing if the address space is not limited (`ulimit -v`).
//   kResourceExhausted  names the limit, and says how to raise it
absl::Status CheckAddressSpace(size_t bytes, absl::string_view what);

// Returns the maximum number of bytes that this process may use: the smallest
// of the machine's memory, the limits of its control groups (version 1 and 2),
// what Slurm grants its job on this node, and its limit of address space
// (`ulimit -v`). Memory in use is not subtracted.
//
// Sources: getrlimit(2); sbatch(1), "Output environment variables".
size_t AvailableMemoryBytes();

// The control group (version 1 or 2) that limits the memory of this process:
// the one that `root`/proc/self/cgroup names, read from `root`/sys/fs/cgroup.
//
// Sources: Linux' Documentation/admin-guide/cgroup-v2.rst and
// cgroup-v1/memory.rst.
class MemoryGroup {
 public:
  explicit MemoryGroup(const std::string& root = "");

  // Returns the lowest limit of the group and its ancestors; SIZE_MAX if there
  // is none.
  size_t LimitBytes() const;

  // Returns the number of processes of the group that the kernel has killed
  // because the memory of the group or of the machine was exhausted. 0 if the
  // kernel does not report it.
  int64_t KillCount() const;

  // "/pod/container"; "" for the top of the hierarchy, or if there is none.
  const std::string& name() const { return name_; }

 private:
  // Returns the folders of the group and its ancestors.
  std::vector<std::string> Folders() const;

  std::string hierarchy_;  // Where the hierarchy is mounted.
  std::string name_;
  std::string limit_file_;
  std::string event_file_;
};

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_MEMORY_LIMITS_H_
