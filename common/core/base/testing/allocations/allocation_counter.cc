#include "common/core/base/testing/allocations/allocation_counter.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> allocation_count = 0;

void* CountedAllocate(size_t size_bytes, size_t alignment_bytes) {
  allocation_count.fetch_add(1, std::memory_order_relaxed);
  const size_t rounded =
      (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  void* const memory =
      std::aligned_alloc(alignment_bytes, std::max(rounded, alignment_bytes));
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(size_t size_bytes) {
  return CountedAllocate(size_bytes, alignof(std::max_align_t));
}
void* operator new(size_t size_bytes, std::align_val_t alignment) {
  return CountedAllocate(size_bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t size_bytes, const std::nothrow_t&) noexcept {
  return CountedAllocate(size_bytes, alignof(std::max_align_t));
}
void* operator new(size_t size_bytes, std::align_val_t alignment,
                   const std::nothrow_t&) noexcept {
  return CountedAllocate(size_bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace muster {

int64_t AllocationCount() {
  return allocation_count.load(std::memory_order_relaxed);
}

}  // namespace muster
