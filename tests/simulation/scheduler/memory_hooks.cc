// Replaces the functions that allocate memory. A simulated thread gets
// simulated memory; any other thread, what the system gives.

#include <errno.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/simulation/scheduler/scheduler.h"
#include "tests/simulation/scheduler/simulated_memory.h"
#include "tests/simulation/scheduler/system_function.h"

extern "C" {
// The functions of glibc under their second names: to look up the first ones
// would allocate memory.
void* __libc_malloc(size_t size_bytes);
void __libc_free(void* block);
void* __libc_calloc(size_t count, size_t size_bytes);
void* __libc_realloc(void* block, size_t size_bytes);
void* __libc_memalign(size_t alignment, size_t size_bytes);
}

namespace muster::sim {
namespace {

constexpr size_t kAlignment = alignof(std::max_align_t);

constinit SystemFunction<size_t(void*)> usable_size("malloc_usable_size");
constinit SystemFunction<void*(void*, size_t, int, int, int, off_t)> map(
    "mmap");

bool IsSimulation() { return Scheduler::Running() != nullptr; }

void* MapMemory(void* address, size_t size_bytes, int protection, int flags,
                int file, off_t offset) {
  if (address == nullptr && IsSimulation()) {
    address = NextMappingAddress(size_bytes);
    flags |= MAP_FIXED_NOREPLACE;
  }
  return map(address, size_bytes, protection, flags, file, offset);
}

}  // namespace

extern "C" {

void* malloc(size_t size_bytes) noexcept {
  return IsSimulation() ? AllocateSimulated(size_bytes, kAlignment)
                        : __libc_malloc(size_bytes);
}

void free(void* block) noexcept {
  if (IsSimulated(block)) {
    FreeSimulated(block);
  } else {
    __libc_free(block);
  }
}

void* calloc(size_t count, size_t size_bytes) noexcept {
  if (!IsSimulation()) return __libc_calloc(count, size_bytes);
  size_t all_bytes = 0;
  if (__builtin_mul_overflow(count, size_bytes, &all_bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return std::memset(AllocateSimulated(all_bytes, kAlignment), 0, all_bytes);
}

size_t malloc_usable_size(void* block) noexcept {
  return IsSimulated(block) ? CapacityOfSimulated(block) : usable_size(block);
}

void* realloc(void* block, size_t size_bytes) noexcept {
  if (block == nullptr) return malloc(size_bytes);
  if (!IsSimulation() && !IsSimulated(block)) {
    return __libc_realloc(block, size_bytes);
  }
  const size_t capacity = malloc_usable_size(block);
  if (IsSimulated(block) && size_bytes <= capacity) return block;
  void* const larger = malloc(size_bytes);
  std::memcpy(larger, block, std::min(capacity, size_bytes));
  free(block);
  return larger;
}

void* memalign(size_t alignment, size_t size_bytes) noexcept {
  return IsSimulation() ? AllocateSimulated(size_bytes, alignment)
                        : __libc_memalign(alignment, size_bytes);
}

void* aligned_alloc(size_t alignment, size_t size_bytes) noexcept {
  return memalign(alignment, size_bytes);
}

int posix_memalign(void** block, size_t alignment, size_t size_bytes) noexcept {
  *block = memalign(alignment, size_bytes);
  return *block == nullptr ? ENOMEM : 0;
}

void* mmap(void* address, size_t size_bytes, int protection, int flags,
           int file, off_t offset) noexcept {
  return MapMemory(address, size_bytes, protection, flags, file, offset);
}
void* mmap64(void* address, size_t size_bytes, int protection, int flags,
             int file, off64_t offset) noexcept {
  return MapMemory(address, size_bytes, protection, flags, file, offset);
}

}  // extern "C"
}  // namespace muster::sim
