#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_LEAF_LOCKSTEP_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_LEAF_LOCKSTEP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/runtime/replica_link.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/synchronous/pack_memory.h"
#include "common/learn/strategy/synchronous/replica_threads.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/reduce_op.h"

namespace muster {

// Runs the leaves of one replica so that each of them is a rank in the
// collectives of the graph: leaf i of the global batch is ReplicaId i, of as
// many as there are leaves. Values of all leaves of all replicas are gathered
// and combined from the first leaf to the last, so a collective yields the same
// bits for any number of replicas.
//
// Every leaf has a thread, but only one runs at a time: each up to its next
// collective, in the order of the leaves. The last leaf exchanges what they
// have contributed with the other replicas. What leaves do between two
// collectives therefore needs no locks, and happens in a fixed order.
//
// A leaf waits as long as the other leaves of its replica compute; the exchange
// with other replicas has a deadline. An error of one leaf, or of the exchange,
// ends all of them, and is final.
//
// Not thread-safe.
class LeafLockstep {
 public:
  struct Options {
    Communicator* communicator = nullptr;         // Borrowed.
    Leaves leaves = {};                           // Of all replicas; not empty.
    absl::Duration timeout = absl::Seconds(300);  // Of one exchange.
    // Called before a collective of `communicator`; null: nothing.
    std::function<absl::Status()> before_exchange = nullptr;
  };

  explicit LeafLockstep(Options options);
  ~LeafLockstep();
  LeafLockstep(const LeafLockstep&) = delete;
  LeafLockstep& operator=(const LeafLockstep&) = delete;

  // The link of a leaf of this replica, numbered from 0. Used by `work` only.
  ReplicaLink* link(int leaf);

  // Calls work(leaf) for every leaf of this replica. All make the same calls of
  // their links. Returns the first error.
  //   kInvalidArgument  two leaves call collectives of other values; names both
  //   kInternal         one leaf calls fewer collectives than another
  //   as Communicator, and as returned by `work`
  absl::Status Run(absl::FunctionRef<absl::Status(int leaf)> work);

 private:
  class Link;

  // One collective, as a leaf calls it.
  struct Call {
    std::optional<ReduceOp> reduction;  // None: gathers.
    DType dtype = DType::kInvalid;
    int64_t element_count = 0;  // Of the result.
    absl::string_view name;
  };

  int own_count() const { return static_cast<int>(outputs_.size()); }
  // Leaf `leaf` of this replica among those of all replicas.
  int NumberOf(int leaf) const { return first_of_rank_[rank_] + leaf; }
  uint8_t* ContributionOf(int number);

  // One collective. `element_counts` are those of the contributions of all
  // leaves; empty: as the result. Returns in the turn of the leaf.
  absl::Status Exchange(int leaf, const Call& call,
                        absl::Span<const int64_t> element_counts,
                        const Tensor& value, void* output);
  void Begin(const Call& call, absl::Span<const int64_t> element_counts);
  absl::Status CheckCall(int leaf, const Call& call, const Tensor& value) const;
  // Exchanges what all own leaves have contributed, and sets their outputs.
  absl::Status Complete();
  // Ends the work of a leaf.
  absl::Status Leave(int leaf);

  absl::Status AwaitTurn(int leaf) ABSL_LOCKS_EXCLUDED(mutex_);
  void PassTurn(int leaf) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const int rank_;
  std::vector<int> first_of_rank_;  // The leaves of rank r: [r, r + 1).
  std::vector<std::unique_ptr<Link>> links_;

  // The collective under way. Used by the leaf whose turn it is.
  Call call_;
  int contributed_count_ = 0;           // Of the own leaves.
  std::vector<int64_t> offsets_;        // Elements before each leaf's, and all.
  std::vector<int64_t> rank_counts_;    // Elements of each rank.
  std::vector<const void*> inputs_;     // Of all leaves.
  std::vector<void*> outputs_;          // Of the own leaves.
  std::vector<uint8_t> contributions_;  // Of all leaves. Never shrinks.

  absl::Mutex mutex_;
  int turn_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // The first error.

  ReplicaThreads threads_;  // Of the own leaves. They use all of the above.
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_LEAF_LOCKSTEP_H_
