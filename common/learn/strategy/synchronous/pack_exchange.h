#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_PACK_EXCHANGE_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_PACK_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/tensor/buffer.h"
#include "common/learn/strategy/synchronous/collective_thread.h"
#include "common/learn/strategy/synchronous/gradient_packs.h"
#include "common/net/collectives/communicator.h"

namespace muster {

// The assignment of parts of the global batch to replicas, for combining
// gradients in an order that does not depend on the number of replicas.
struct Leaves {
  // The number of parts of the global batch; 0: one per replica, combined in
  // the communicator's order.
  int count = 0;
  // The number of parts of each rank, numbered rank by rank. Empty if `count`
  // is 0.
  std::vector<int> count_of_rank = {};
};

// One replica's packs: holds what it has computed, and then the sums over all
// replicas. Every replica makes the same calls.
//
// With fixed leaves, every part of the global batch has its own memory on every
// replica, all parts are gathered everywhere, and each replica sums them from
// the first to the last. That transfers `count` times as much, and yields the
// same bits for any number of replicas.
//
// Errors are those of the communicator. Not thread-safe.
class PackExchange {
 public:
  struct Options {
    Communicator* communicator = nullptr;  // Borrowed.
    absl::Duration timeout = absl::Seconds(300);
    // Sends packs on a separate thread as soon as they are complete; otherwise
    // at the end of the step.
    bool overlaps = false;
    Leaves leaves = {};
  };

  // `names` are those of the gradients, for errors and hang reports.
  PackExchange(PackPlan plan, const std::vector<std::string>& names,
               Options options);

  // Allocates memory, once: a collective.
  absl::Status Start();

  // The number of this replica's leaves in a step: 1 unless leaves are fixed.
  int own_leaf_count() const { return own_leaf_count_; }

  // The memory of item `item` of this replica's leaf `leaf`; valid after
  // Start(). Every step fills all of it, except the gaps between items.
  uint8_t* Contribution(int item, int leaf);

  // Called when gradient `gradient` of the last leaf has been stored; gradients
  // are reported in order.
  void GradientIsReady(int gradient);

  // Blocks until packs in transit have arrived. Call it before another
  // collective.
  absl::Status AwaitPacksUnderWay();

  // Computes the sums of everything, including trailers.
  absl::Status Finish();

  // The memory of the sum of an item, from Finish() until the next step.
  uint8_t* Sum(int item) { return Leaf(item, 0); }
  // The memory that contains it, and the position in it.
  const std::shared_ptr<Buffer>& BufferOf(int item) const;
  size_t OffsetOf(int item) const;

 private:
  struct Memory {
    std::string name = {};  // "dense/kernel and 3 more".
    std::shared_ptr<Buffer> buffer = nullptr;
    int64_t stride = 0;  // Elements from one leaf to the next.
    std::vector<int64_t> element_counts = {};  // Total of the ranks' leaves.
  };

  uint8_t* Leaf(int item, int leaf);
  absl::Status ReducePack(int pack);
  absl::Status GatherLeaves(int pack);

  const PackPlan plan_;
  const Options options_;
  const int leaf_count_;
  int own_leaf_begin_ = 0;
  int own_leaf_count_ = 1;
  std::vector<Memory> memories_;              // Of each pack.
  int next_pack_ = 0;                         // Not yet reduced or submitted.
  std::unique_ptr<CollectiveThread> thread_;  // Null without overlap.
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_PACK_EXCHANGE_H_
