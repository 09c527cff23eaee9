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

// Collectives of ranks that reach each other's memory.
//
//   one-shot  Each rank copies its elements into a slot that all see. All wait
//             once for each other; each combines all slots for itself.
//   direct    Elements lie in shared memory. After a barrier each rank combines
//   one
//             part of them and writes it to all; a second barrier ends it: no
//             copies.
//   staged    One-shot in blocks, for memory that only its owner sees.
//   read      As direct, for the same: every rank reads its part out of the
//             others' processes, and then theirs.
//
// All combine an element's values in the order of ranks, so they make the same
// bits, and ranks may mix shared and private memory in one call.
class SharedMemoryCommunicator final : public Communicator {
 public:
  struct Options {
    uint64_t generation = 0;
    std::string transport;
    SharedMemoryTuning tuning;
  };

  // The memory and sockets of a rank. Destroyed from the last to the first.
  struct Ground {
    std::shared_ptr<const void> owned;  // The others are borrowed from it.
    std::unique_ptr<RankBarrier> barrier;
    std::unique_ptr<PeerMemory> memory;
    std::unique_ptr<PeerWatch> watch;  // Null where no peer ends alone.
  };

  SharedMemoryCommunicator(Options options, Ground ground);
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
  // Begins a collective and ends it.
  class Call;

  using Kind = Location::Kind;

  struct ByteRange {
    size_t begin = 0;
    size_t end = 0;
    size_t size() const { return end - begin; }
  };

  // Where this rank says that `span` lies. Copies it into the slot if it is
  // small, or small enough for that and seen by this rank only.
  Location Offer(TensorSpan span);
  Location CopyToSlot(const uint8_t* from, size_t size_bytes);

  // Asks for the cache lines of the slot that the next call fills, which the
  // others have read and thereby hold, so that filling it need not wait.
  void ReclaimNextSlot(size_t size_bytes);

  absl::Status ArriveAndWait(const PublishedCall& signature,
                             const Location& location) {
    return barrier_->ArriveAndWait({signature, location},
                                   location.kind == Kind::kShared
                                       ? RankBarrier::Exposure::kCallersMemory
                                       : RankBarrier::Exposure::kNone);
  }

  // Read from the cards of the last barrier.
  bool HaveAll(Kind kind) const;
  bool HasAny(Kind kind) const;

  // Where `rank`'s `size_bytes` lie for this process; null if it cannot see
  // them.
  uint8_t* Reach(int rank, size_t size_bytes) const;

  // Copies `range` of `rank`'s `total_bytes`, wherever they lie.
  absl::Status Fetch(int rank, size_t total_bytes, ByteRange range,
                     uint8_t* to);

  // Combines `range` of `buffer`, which is this rank's, with that of the
  // others.
  enum class ResultsTo { kOwner, kAllRanks };
  absl::Status ReducePart(ReduceOp op, TensorSpan buffer, ByteRange range,
                          ResultsTo results_to);

  // Calls `combine` with each block of `buffer` while the block lies in the
  // slots of all ranks, or, for those whose is not `is_mine`, does not.
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
  const Ground ground_;
  RankBarrier* const barrier_;
  PeerMemory* const memory_;
  const int rank_;
  const int size_;

  // Whichever of the two slots is used next, all ranks count alike.
  uint64_t staged_count_ = 0;
  std::vector<uint8_t> scratch_;
};

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_SHM_SHARED_MEMORY_COMMUNICATOR_H_
