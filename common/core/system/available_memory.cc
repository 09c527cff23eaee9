#include "common/core/system/available_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "common/core/system/memory_group.h"

namespace muster {
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

}  // namespace muster
