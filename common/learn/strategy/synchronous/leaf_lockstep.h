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

// Runs the leaves of one replica so that each leaf is a rank in the collectives
// of the graph: leaf i of the global batch has ReplicaId i, and the number of
// ranks is the number of leaves. Values of all leaves of all replicas are
// gathered and combined from the first leaf to the last, so a collective yields
// the same bits for any number of replicas.
//
// Every leaf has a thread, but only one thread runs at a time: each leaf runs
// up to its next collective, in the order of the leaves. The last leaf
// exchanges the contributions of all leaves with the other replicas. Work of
// leaves between two collectives therefore needs no locks and runs in a fixed
// order.
//
// A leaf waits without a deadline while the other leaves of its replica
// compute; the exchange with other replicas has a deadline. An error of one
// leaf or of the exchange ends all leaves and is final.
//
// Not thread-safe.
class LeafLockstep {
 public:
  struct Options {
    Communicator* communicator = nullptr;  // Borrowed.
    // Leaves of all replicas; not empty.
    Leaves leaves = {};
    absl::Duration timeout = absl::Seconds(300);  // Of one exchange.
    // Called before a collective of `communicator`; may be null.
    std::function<absl::Status()> before_exchange = nullptr;
  };

  explicit LeafLockstep(Options options);
  ~LeafLockstep();
  LeafLockstep(const LeafLockstep&) = delete;
  LeafLockstep& operator=(const LeafLockstep&) = delete;

  // Returns the link of a leaf of this replica, numbered from 0. Only `work`
  // may use it.
  ReplicaLink* link(int leaf);

  // Calls work(leaf) for every leaf of this replica. All leaves make the same
  // calls on their links. Returns the first error.
  //   kInvalidArgument  two leaves call different collectives; names both
  //   kInternal         one leaf calls fewer collectives than another
  //   as Communicator, and as returned by `work`
  absl::Status Run(absl::FunctionRef<absl::Status(int leaf)> work);

 private:
  class Link;

  // The arguments of a leaf's call of a collective.
  struct Call {
    std::optional<ReduceOp> reduction;  // Absent: gathers.
    DType dtype = DType::kInvalid;
    int64_t element_count = 0;  // Of the result.
    absl::string_view name;
  };

  int own_count() const { return static_cast<int>(outputs_.size()); }
  // Returns the number of leaf `leaf` of this replica among the leaves of all
  // replicas.
  int NumberOf(int leaf) const { return first_of_rank_[rank_] + leaf; }
  uint8_t* ContributionOf(int number);

  // Runs one collective. `element_counts` has the size of each leaf's
  // contribution; empty if each has the size of the result. Returns when it is
  // the leaf's turn again.
  absl::Status Exchange(int leaf, const Call& call,
                        absl::Span<const int64_t> element_counts,
                        const Tensor& value, void* output);
  void Begin(const Call& call, absl::Span<const int64_t> element_counts);
  absl::Status CheckCall(int leaf, const Call& call, const Tensor& value) const;
  // Exchanges the contributions of this replica's leaves and sets their
  // outputs.
  absl::Status Complete();
  // Ends the work of a leaf.
  absl::Status Leave(int leaf);

  absl::Status AwaitTurn(int leaf) ABSL_LOCKS_EXCLUDED(mutex_);
  void PassTurn(int leaf) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const int rank_;
  // Rank r has the leaves from element r to element r + 1.
  std::vector<int> first_of_rank_;
  std::vector<std::unique_ptr<Link>> links_;

  // The current collective. Used by the leaf whose turn it is.
  Call call_;
  int contributed_count_ = 0;  // Of this replica's leaves.
  // Elements before each leaf's contribution, then the total.
  std::vector<int64_t> offsets_;
  std::vector<int64_t> rank_counts_;    // Elements of each rank.
  std::vector<const void*> inputs_;     // Of all leaves.
  std::vector<void*> outputs_;          // Of this replica's leaves.
  std::vector<uint8_t> contributions_;  // Of all leaves. Never shrinks.

  absl::Mutex mutex_;
  int turn_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // The first error.

  // One for each leaf of this replica. Declared last: they use the other
  // members.
  ReplicaThreads threads_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_LEAF_LOCKSTEP_H_
