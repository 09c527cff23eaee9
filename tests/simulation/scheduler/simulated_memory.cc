#include "tests/simulation/scheduler/simulated_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "common/core/base/check.h"

namespace muster::sim {
namespace {

// Linux places programs, libraries, stacks and the heap elsewhere if addresses
// are not random.
constexpr uintptr_t kHeapBegin = 0x2000'0000'0000;
constexpr size_t kHeapBytes = size_t{64} << 30;
constexpr uintptr_t kMappingsBegin = 0x3000'0000'0000;
constexpr size_t kPageBytes = 4096;
// malloc() aligns to this.
constexpr size_t kAlignmentMin = 16;

// Stands before each block.
struct Header {
  uint32_t size_class;
  uint32_t offset;  // From the beginning of the memory of the block.
  size_t capacity_bytes;
};
static_assert(sizeof(Header) == kAlignmentMin);

// The free blocks of a class are a list; the first bytes of each are a pointer
// to the next one.
struct FreeBlock {
  FreeBlock* next;
};

// Sizes up to 1 KiB are multiples of 16 bytes. Above, each power of two has
// four classes.
constexpr size_t kSmallBytesMax = 1024;
constexpr uint32_t kSmallClassCount = kSmallBytesMax / kAlignmentMin + 1;
constexpr uint32_t kClassCount = kSmallClassCount + 4 * 40;

struct SizeClass {
  uint32_t index;
  size_t size_bytes;
};

SizeClass ClassOf(size_t size_bytes) {
  if (size_bytes <= kSmallBytesMax) {
    const size_t index = (size_bytes + kAlignmentMin - 1) / kAlignmentMin;
    return {static_cast<uint32_t>(index), index * kAlignmentMin};
  }
  const int power = std::bit_width(size_bytes - 1) - 1;
  const size_t quarter = size_t{1} << (power - 2);
  const size_t quarters = (size_bytes + quarter - 1) / quarter;
  return {
      kSmallClassCount + static_cast<uint32_t>((power - 10) * 4 + quarters - 5),
      quarters * quarter};
}

uint8_t* heap_next = nullptr;
FreeBlock* free_blocks[kClassCount] = {};
uintptr_t mapping_next = kMappingsBegin;

Header* HeaderOf(const void* block) {
  return reinterpret_cast<Header*>(reinterpret_cast<uintptr_t>(block)) - 1;
}

}  // namespace

void ReserveSimulatedMemory() {
  void* const begin = reinterpret_cast<void*>(kHeapBegin);
  MUSTER_CHECK(
      mmap(begin, kHeapBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
           -1, 0) == begin);
  heap_next = static_cast<uint8_t*>(begin);
}

void* AllocateSimulated(size_t size_bytes, size_t alignment) {
  const size_t extra = alignment > kAlignmentMin ? alignment : 0;
  const SizeClass size_class =
      ClassOf(std::max(size_bytes, sizeof(FreeBlock)) + sizeof(Header) + extra);
  uint8_t* memory;
  if (FreeBlock*& first = free_blocks[size_class.index]; first != nullptr) {
    memory = reinterpret_cast<uint8_t*>(first);
    first = first->next;
  } else {
    memory = heap_next;
    heap_next += size_class.size_bytes;
    MUSTER_CHECK(reinterpret_cast<uintptr_t>(heap_next) <=
                 kHeapBegin + kHeapBytes);
  }
  uintptr_t block = reinterpret_cast<uintptr_t>(memory) + sizeof(Header);
  if (extra > 0) block = (block + alignment - 1) / alignment * alignment;
  const size_t offset = block - reinterpret_cast<uintptr_t>(memory);
  void* const result = reinterpret_cast<void*>(block);
  *HeaderOf(result) = {.size_class = size_class.index,
                       .offset = static_cast<uint32_t>(offset),
                       .capacity_bytes = size_class.size_bytes - offset};
  return result;
}

void FreeSimulated(void* block) {
  const Header header = *HeaderOf(block);
  auto* const freed = reinterpret_cast<FreeBlock*>(
      static_cast<uint8_t*>(block) - header.offset);
  freed->next = free_blocks[header.size_class];
  free_blocks[header.size_class] = freed;
}

bool IsSimulated(const void* block) {
  const auto address = reinterpret_cast<uintptr_t>(block);
  return address >= kHeapBegin && address < kHeapBegin + kHeapBytes;
}

size_t CapacityOfSimulated(const void* block) {
  return HeaderOf(block)->capacity_bytes;
}

void* NextMappingAddress(size_t size_bytes) {
  const uintptr_t address = mapping_next;
  // One page more, so that an access behind the mapping fails.
  mapping_next += (size_bytes / kPageBytes + 2) * kPageBytes;
  return reinterpret_cast<void*>(address);
}

}  // namespace muster::sim
