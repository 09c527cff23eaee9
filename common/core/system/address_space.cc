#include "common/core/system/address_space.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "absl/strings/str_cat.h"

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

}  // namespace muster
