#ifndef COMMON_CORE_BASE_ARENA_PLANNER_H_
#define COMMON_CORE_BASE_ARENA_PLANNER_H_

#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace muster {

// Places blocks with known lifetimes into one piece of memory. Simulates a
// step: call Allocate() when a value is created and Free() after its last use.
// Pure arithmetic; owns no memory.
class ArenaPlanner {
 public:
  static constexpr size_t kCacheLineBytes = 64;

  struct Block {
    size_t offset_bytes = 0;
    size_t size_bytes = 0;  // Rounded up.
  };

  // Offsets and sizes of blocks are multiples of `alignment_bytes`.
  explicit ArenaPlanner(size_t alignment_bytes = kCacheLineBytes)
      : alignment_bytes_(alignment_bytes) {}

  // Places the block in the smallest hole that is large enough, otherwise at
  // the end.
  Block Allocate(size_t size_bytes);

  // `block` was returned by Allocate() and is not free.
  void Free(const Block& block);

  // The size of the memory that contains all blocks so far.
  size_t size_bytes() const { return size_bytes_; }

 private:
  void AddHole(size_t offset_bytes, size_t size_bytes);
  void RemoveHole(size_t offset_bytes);

  const size_t alignment_bytes_;
  std::map<size_t, size_t> holes_;  // Size by offset; no two are adjacent.
  std::set<std::pair<size_t, size_t>> holes_by_size_;  // (size, offset)
  size_t size_bytes_ = 0;
};

}  // namespace muster

#endif  // COMMON_CORE_BASE_ARENA_PLANNER_H_
