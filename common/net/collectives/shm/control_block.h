#ifndef COMMON_NET_COLLECTIVES_SHM_CONTROL_BLOCK_H_
#define COMMON_NET_COLLECTIVES_SHM_CONTROL_BLOCK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/core/tensor/dtype.h"
#include "common/net/collectives/reduce_op.h"

// The state that a rank publishes: one block per rank, in memory that all ranks
// have mapped. Only the owner writes to its block, except for `sleeping`.
namespace muster::internal {

enum class Collective : uint8_t {
  kConnect,
  kAllocate,
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kBarrier,
};

// The values that must be equal on all ranks before a rank accesses the memory
// of another.
struct PublishedCall {
  Collective collective = Collective::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kInvalid;
  uint8_t root = 0;
  uint32_t counts_hash = 0;   // Hash of AllGather's element counts.
  int64_t element_count = 0;  // Bytes, for kAllocate.

  friend bool operator==(const PublishedCall&, const PublishedCall&) = default;
};

// The location of a rank's elements at this barrier.
struct Location {
  enum class Kind : uint32_t {
    kNowhere,
    kSlot,     // In the slot of this staged call, from its beginning.
    kShared,   // `offset` bytes into shared memory number `segment`.
    kPrivate,  // At address `offset` of the owner's process.
  };
  Kind kind = Kind::kNowhere;
  uint32_t segment = 0;
  uint64_t offset = 0;
};

// The data that a rank publishes at a barrier.
struct BarrierCard {
  PublishedCall signature;
  Location location;
};

// The card and the number of its barrier share a cache line, so that one
// transfer moves both. A rank is never two barriers ahead of another, so two
// lines are enough: one for odd barriers and one for even ones.
struct alignas(128) BarrierLine {
  std::atomic<uint64_t> epoch{0};
  BarrierCard card;
};
static_assert(sizeof(std::atomic<uint64_t>) + sizeof(BarrierCard) <= 64);

struct ControlBlock {
  static constexpr size_t kSlotBytes = 256 * 1024;
  static constexpr size_t kFailureTextBytes = 1000;

  BarrierLine lines[2];

  // Rarely written, so that the lines stay in the readers' caches.
  struct alignas(128) {
    // A futex: 1 while the owner sleeps. The thread that wakes the owner sets
    // it to 0.
    std::atomic<uint32_t> sleeping{0};
    // Once it is set, the fields of `failure` no longer change.
    std::atomic<uint32_t> has_failed{0};
    std::atomic<uint32_t> has_left{0};
    // The barrier at which the owner failed; 0 if it did not fail at a barrier.
    std::atomic<uint64_t> failed_epoch{0};
  } state;

  struct {
    int32_t code = 0;
    int32_t rank = 0;  // The rank that failed first, as far as the owner knows.
    char text[kFailureTextBytes] = {};
  } failure;

  // Staged calls alternate between the two slots. Before a rank refills a slot,
  // a barrier for the other slot has ensured that no rank still reads it.
  alignas(4096) uint8_t slots[2][kSlotBytes];

  uint64_t ArrivedAt() const {
    const uint64_t a = lines[0].epoch.load(std::memory_order_acquire);
    const uint64_t b = lines[1].epoch.load(std::memory_order_acquire);
    return a > b ? a : b;
  }
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_SHM_CONTROL_BLOCK_H_
