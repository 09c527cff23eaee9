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

// Which pieces of the global batch are whose, where gradients are combined in
// an order that does not depend on the number of replicas.
struct Leaves {
  // Pieces of the global batch; 0: one for each replica, combined as the
  // communicator likes.
  int count = 0;
  // How many each rank has; they are numbered rank by rank. Empty when there is
  // no count.
  std::vector<int> count_of_rank = {};
};

// One replica's packs: what it has computed goes in, what all have computed
// together comes out. Every replica makes the same calls.
//
// Fixed leaves: every piece of the global batch has memory of its own on every
// replica, all pieces are gathered everywhere, and each replica adds them up
// from the first to the last. That moves `count` times as much, and gives the
// same bits for any number of replicas.
//
// Errors are those of the communicator. Not thread-safe.
class PackExchange {
 public:
  struct Options {
    Communicator* communicator = nullptr;  // Borrowed.
    absl::Duration timeout = absl::Seconds(300);
    // Sends packs on a thread of its own as soon as they are full; else at the
    // end of the step.
    bool overlaps = false;
    Leaves leaves = {};
  };

  // `names` are those of the gradients, for errors and hang reports.
  PackExchange(PackPlan plan, const std::vector<std::string>& names,
               Options options);

  // Allocates, once: a collective.
  absl::Status Start();

  // This replica's leaves of a step: 1 unless leaves are fixed.
  int own_leaf_count() const { return own_leaf_count_; }

  // Where item `item` of this replica's leaf `leaf` goes; valid after Start().
  // Every step fills all of it, except what lies between items.
  uint8_t* Contribution(int item, int leaf);

  // Gradient `gradient` of the last leaf has been put where it belongs; they
  // come in order.
  void GradientIsReady(int gradient);

  // Until packs under way have arrived: before another collective.
  absl::Status AwaitPacksUnderWay();

  // Makes the sums: of everything, trailers included.
  absl::Status Finish();

  // Where the sum of an item lies, from Finish() until the next step.
  uint8_t* Sum(int item) { return Leaf(item, 0); }
  // The memory that it lies in, and where.
  const std::shared_ptr<Buffer>& BufferOf(int item) const;
  size_t OffsetOf(int item) const;

 private:
  struct Memory {
    std::string name = {};  // "dense/kernel and 3 more".
    std::shared_ptr<Buffer> buffer = nullptr;
    int64_t stride = 0;  // Elements from one leaf to the next.
    std::vector<int64_t> element_counts = {};  // Of the ranks' leaves together.
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
