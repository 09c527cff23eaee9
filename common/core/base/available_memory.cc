#include "common/core/base/available_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "common/core/base/memory_group.h"

namespace muster {

size_t AvailableMemoryBytes() {
  size_t bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  bytes = std::min(bytes, MemoryGroup().LimitBytes());
  rlimit address_space;
  if (getrlimit(RLIMIT_AS, &address_space) == 0 &&
      address_space.rlim_cur != RLIM_INFINITY) {
    bytes = std::min<size_t>(bytes, address_space.rlim_cur);
  }
  return bytes;
}

}  // namespace muster
