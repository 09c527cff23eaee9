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

// Memory that may be taken for what is put aside, by all variables of a server
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

// The arrays of one variable (its value and slots) as they were at one moment,
// while they are read block by block and updates go on: whoever is about to
// change a block that has not been read puts a copy of it aside.
//
// Calls for one block come one after another, under the lock that guards its
// rows; those for different blocks may come side by side.
class FrozenRows {
 public:
  // A block as it is now.
  struct Block {
    int array = 0;
    int number = 0;
    size_t offset_bytes = 0;  // Of the array.
    absl::Span<const uint8_t> live;
  };

  // Arrays are of `array_bytes` each.
  FrozenRows(int array_count, int block_count, size_t array_bytes,
             std::shared_ptr<AsideBudget> budget);
  ~FrozenRows();

  FrozenRows(const FrozenRows&) = delete;
  FrozenRows& operator=(const FrozenRows&) = delete;

  int array_count() const { return array_count_; }

  // Whether there is nothing left to be put aside.
  bool is_read() const {
    return pending_count_.load(std::memory_order_relaxed) == 0;
  }

  // The block changes afterwards. Where the budget or memory is spent
  // everything is given up.
  void PutAside(const Block& block);

  // The block as it was, to `out`, which is as large. Once for each. False when
  // it has been given up.
  bool Take(const Block& block, uint8_t* out);

  // What has not been read will not be.
  void GiveUp() { is_given_up_.store(true); }
  bool is_given_up() const { return is_given_up_.load(); }

 private:
  enum class State : uint8_t { kLive, kAside, kRead };

  State& StateOf(const Block& block) {
    return states_[static_cast<size_t>(block.array) * block_count_ +
                   block.number];
  }
  // Where a block is put aside; null: there is no memory.
  uint8_t* PlaceOf(const Block& block);

  const int array_count_;
  const int block_count_;
  const size_t array_bytes_;
  const std::shared_ptr<AsideBudget> budget_;
  std::vector<State> states_;
  std::atomic<int64_t> pending_count_;  // Blocks that are kLive.
  std::atomic<int64_t> aside_bytes_{0};
  std::atomic<bool> is_given_up_{false};
  // All arrays, one after another. Made when the first block is put aside, and
  // used up page by page: one range in huge pages is filled five times as fast
  // as blocks of their own.
  std::once_flag made_;
  Tensor aside_;
};

}  // namespace muster

#endif  // PS_FROZEN_ROWS_H_
