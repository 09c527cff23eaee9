#ifndef COMMON_CORE_BASE_AVAILABLE_MEMORY_H_
#define COMMON_CORE_BASE_AVAILABLE_MEMORY_H_

#include <cstddef>
#include <string>

namespace muster {

// Returns the number of bytes that this process may use at most: the least of
// the machine's memory, the limits of its control groups (version 1 and 2) and
// its limit of address space (`ulimit -v`). Does not consider what is in use.
//
// Sources: Linux' Documentation/admin-guide/cgroup-v2.rst and
// cgroup-v1/memory.rst; getrlimit(2).
size_t AvailableMemoryBytes();

namespace internal {

// The least limit of the control groups that `root`/proc/self/cgroup names, and
// of those above them, read from `root`/sys/fs/cgroup. SIZE_MAX if there is
// none.
size_t ControlGroupMemoryLimitBytes(const std::string& root);

}  // namespace internal
}  // namespace muster

#endif  // COMMON_CORE_BASE_AVAILABLE_MEMORY_H_
