#ifndef PS_FROZEN_ROWS_H_
#define PS_FROZEN_ROWS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// The memory limit for the copies that all FrozenRows of a server make
// together. Thread-safe.
class AsideBudget {
 public:
  explicit AsideBudget(size_t size_bytes_max)
      : size_bytes_max_(static_cast<int64_t>(size_bytes_max)) {}

  bool Take(size_t size_bytes) {
    const int64_t taken = static_cast<int64_t>(size_bytes);
    if (size_bytes_.fetch_add(taken) + taken <= size_bytes_max_) return true;
    size_bytes_.fetch_sub(taken);
    return false;
  }
  void Return(size_t size_bytes) {
    size_bytes_.fetch_sub(static_cast<int64_t>(size_bytes));
  }
  int64_t size_bytes() const { return size_bytes_.load(); }

 private:
  const int64_t size_bytes_max_;
  std::atomic<int64_t> size_bytes_{0};
};

// A copy-on-write snapshot of the arrays of one variable: its value and its
// optimizer slots. A saver reads the snapshot block by block while updates
// continue. An update calls PutAside() before it changes a block, which copies
// the block if it has not been read.
//
// Thread-compatible for one block: its calls are serialized by the lock that
// guards its rows. Calls for different blocks may run concurrently.
class FrozenRows {
 public:
  // A block and its current contents.
  struct Block {
    int array = 0;
    int number = 0;
    size_t offset_bytes = 0;  // From the start of the array.
    absl::Span<const uint8_t> live;
  };

  // Each array has `array_bytes` bytes.
  FrozenRows(int array_count, int block_count, size_t array_bytes,
             std::shared_ptr<AsideBudget> budget);
  ~FrozenRows();

  FrozenRows(const FrozenRows&) = delete;
  FrozenRows& operator=(const FrozenRows&) = delete;

  int array_count() const { return array_count_; }

  // True if every block has been read or copied, so that PutAside() has nothing
  // left to do.
  bool is_read() const {
    return pending_count_.load(std::memory_order_relaxed) == 0;
  }

  // Copies the block before an update changes it. Abandons the snapshot if the
  // budget or the memory is exhausted.
  void PutAside(const Block& block);

  // Copies the block as of the snapshot to `out`, which has the block's size.
  // Call once for each block. Returns false if the snapshot has been abandoned.
  bool Take(const Block& block, uint8_t* out);

  // Abandons the snapshot: Take() returns false from now on.
  void GiveUp() { is_given_up_.store(true); }
  bool is_given_up() const { return is_given_up_.load(); }

 private:
  enum class State : uint8_t { kLive, kAside, kRead };

  State& StateOf(const Block& block) {
    return states_[static_cast<size_t>(block.array) * block_count_ +
                   block.number];
  }
  // Returns the address of the copy of the block, or null if there is no
  // memory.
  uint8_t* PlaceOf(const Block& block);

  const int array_count_;
  const int block_count_;
  const size_t array_bytes_;
  const std::shared_ptr<AsideBudget> budget_;
  std::vector<State> states_;
  std::atomic<int64_t> pending_count_;  // Blocks that are kLive.
  std::atomic<int64_t> aside_bytes_{0};
  std::atomic<bool> is_given_up_{false};
  // The copies of all arrays, one after another. Allocated with the first copy;
  // its pages are touched only when they are needed. Filling one range of huge
  // pages is five times as fast as filling separate blocks.
  std::once_flag made_;
  Tensor aside_;
};

}  // namespace muster

#endif  // PS_FROZEN_ROWS_H_
