#ifndef COMMON_NET_COLLECTIVES_SHM_SHARED_MEMORY_COMMUNICATOR_H_
#define COMMON_NET_COLLECTIVES_SHM_SHARED_MEMORY_COMMUNICATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/shm/control_block.h"
#include "common/net/collectives/shm/group_options.h"
#include "common/net/collectives/shm/peer_memory.h"
#include "common/net/collectives/shm/rank_barrier.h"
#include "common/net/collectives/shm/rank_sockets.h"

namespace muster::internal {

// Collectives of ranks that can access each other's memory.
//
//   one-shot  Each rank copies its elements to a slot that all ranks can read.
//             After one barrier, each rank reduces all slots by itself.
//   direct    The elements are in shared memory. After a barrier, each rank
//             reduces one part of them and writes the result to all ranks'
//             memory. A second barrier ends the call. Nothing is copied.
//   staged    One-shot in blocks, for private memory.
//   read      For private memory: each rank reads its part from the other
//             processes and reduces it, then reads their results.
//
// All algorithms combine the values of an element in rank order, so their
// results have the same bits. Ranks may mix shared and private memory in one
// call.
class SharedMemoryCommunicator final : public Communicator {
 public:
  struct Options {
    uint64_t generation = 0;
    std::string transport;
    SharedMemoryTuning tuning;
  };

  // The memory and sockets of a rank. Members are destroyed from the last to
  // the first.
  struct MemoryResources {
    std::shared_ptr<const void> owned;  // The other members borrow from it.
    std::unique_ptr<RankBarrier> barrier;
    std::unique_ptr<PeerMemory> memory;
    std::unique_ptr<PeerWatch> watch;  // Null if no peer can end by itself.
  };

  SharedMemoryCommunicator(Options options, MemoryResources ground);
  ~SharedMemoryCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  uint64_t generation() const override { return options_.generation; }
  std::string transport() const override { return options_.transport; }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, const CollectiveCall& call) override;
  absl::Status AllReduce(ReduceOp op, TensorSpan buffer,
                         const CollectiveCall& call) override;
  absl::Status ReduceScatter(ReduceOp op, TensorSpan buffer,
                             const CollectiveCall& call) override;
  absl::Status AllGather(TensorSpan input,
                         absl::Span<const int64_t> element_counts,
                         TensorSpan output,
                         const CollectiveCall& call) override;
  absl::Status Broadcast(TensorSpan buffer, int root,
                         const CollectiveCall& call) override;
  absl::Status Barrier(const CollectiveCall& call) override;
  void Abort(absl::Status status) override;
  CollectiveProgress Progress() const override { return barrier_->Progress(); }

 private:
  // Begins a collective, and ends it in its destructor.
  class Call;

  using Kind = Location::Kind;

  struct ByteRange {
    size_t begin = 0;
    size_t end = 0;
    size_t size() const { return end - begin; }
  };

  // Returns the location of `span` that this rank publishes. Copies `span` into
  // the slot if it is small enough for a one-shot call, or if it is private and
  // fits into the slot.
  Location Offer(TensorSpan span);
  Location CopyToSlot(const uint8_t* from, size_t size_bytes);

  // Prefetches the cache lines of the slot that the next call fills. Other
  // ranks have read them, so without the prefetch, filling the slot would wait
  // for their caches.
  void ReclaimNextSlot(size_t size_bytes);

  absl::Status ArriveAndWait(const PublishedCall& signature,
                             const Location& location) {
    return barrier_->ArriveAndWait({signature, location},
                                   location.kind == Kind::kShared
                                       ? RankBarrier::Exposure::kCallersMemory
                                       : RankBarrier::Exposure::kNone);
  }

  // Evaluate the cards of the last barrier.
  bool HaveAll(Kind kind) const;
  bool HasAny(Kind kind) const;

  // Returns the address of `rank`'s `size_bytes` in this process; null if they
  // are not in shared memory.
  uint8_t* MemoryOfRank(int rank, size_t size_bytes) const;

  // Copies `range` of `rank`'s `total_bytes`, which may be in shared or private
  // memory.
  absl::Status Fetch(int rank, size_t total_bytes, ByteRange range,
                     uint8_t* to);

  // Reduces `range` of this rank's `buffer` and of the others' buffers.
  enum class ResultsTo { kOwner, kAllRanks };
  absl::Status ReducePart(ReduceOp op, TensorSpan buffer, ByteRange range,
                          ResultsTo results_to);

  // Calls `combine` with each block of `buffer` while the slots of the ranks
  // hold the block. A rank copies its own block to its slot only if `is_mine`.
  absl::Status ForEachBlock(
      const PublishedCall& signature, TensorSpan buffer, bool is_mine,
      absl::FunctionRef<absl::Status(TensorSpan block)> combine);

  absl::Status AllReduceStaged(const PublishedCall& signature,
                               TensorSpan buffer);
  absl::Status AllGatherStaged(const PublishedCall& signature,
                               absl::Span<const TensorSpan> parts);
  absl::Status CheckGather(TensorSpan input,
                           absl::Span<const int64_t> element_counts,
                           TensorSpan output) const;

  const Options options_;
  const MemoryResources resources_;
  RankBarrier* const barrier_;
  PeerMemory* const memory_;
  const int rank_;
  const int size_;

  // Its lowest bit selects the slot. Equal on all ranks.
  uint64_t staged_count_ = 0;
  std::vector<uint8_t> scratch_;
};

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_SHM_SHARED_MEMORY_COMMUNICATOR_H_
