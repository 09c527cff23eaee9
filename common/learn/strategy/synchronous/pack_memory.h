#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_PACK_MEMORY_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_PACK_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/synchronous/gradient_packs.h"

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

// Where the items of all leaves are. One pack has the same place for each leaf,
// one leaf after another.
struct PackLayout {
  struct Pack {
    std::string name = {};  // "dense/kernel and 3 more".
    int64_t stride = 0;     // Elements from one leaf to the next.
    std::vector<int64_t> element_counts = {};  // Total of the ranks' leaves.
  };

  // `names` are those of the gradients. A replica reads and writes the items
  // from `host_items_begin` to `host_items_end` on the host.
  PackLayout(PackPlan plan, const std::vector<std::string>& names,
             int host_items_begin, int host_items_end, const Leaves& leaves,
             int rank);

  bool has_fixed_leaves() const { return fixed_leaf_count > 0; }
  bool IsHostItem(int item) const {
    return item >= host_items_begin && item < host_items_end;
  }
  size_t SizeBytes(int pack) const {
    return packs[pack].stride * leaf_count * SizeOf(plan.packs[pack].dtype);
  }
  // Of an item in the memory of its pack.
  size_t OffsetBytes(int item, int leaf) const;

  PackPlan plan;
  int host_items_begin = 0;
  int host_items_end = 0;
  int fixed_leaf_count = 0;
  int leaf_count = 1;
  int own_leaf_begin = 0;  // Of this rank.
  int own_leaf_count = 1;
  std::vector<Pack> packs;
};

// By what numbers are multiplied.
struct PackScale {
  double value = 1;
  // Not null: the number is there when the device comes to the work. Only for
  // packs on a device.
  const double* on_device = nullptr;
};

// The memory of one replica's packs, and the collectives on it: of the host, or
// of a GPU. Made and used by PackExchange. `leaf` counts the leaves of this
// rank.
//
// Seal() and Reduce() of one pack follow each other, Reduce() perhaps on
// another thread than the other functions. Otherwise not thread-safe. Errors
// are those of the communicator and of the device.
class PackMemory {
 public:
  virtual ~PackMemory() = default;

  // A collective.
  virtual absl::Status Allocate() = 0;

  // An item becomes value * scale; zeros if the scale is 0. Other scales than 0
  // and 1 are for floating dtypes. On a device, `value` may be in pinned memory
  // that earlier work of the stream writes.
  virtual absl::Status Contribute(int item, int leaf, const Tensor& value,
                                  const PackScale& scale) = 0;
  virtual absl::Status ContributeZeros(int item, int leaf,
                                       size_t size_bytes) = 0;
  // Where the caller writes a host item, before Seal().
  virtual uint8_t* HostContribution(int item, int leaf) = 0;

  // All items of a pack have been contributed.
  virtual absl::Status Seal(int pack) = 0;
  // Combines a pack over all replicas.
  virtual absl::Status Reduce(int pack) = 0;
  // After Reduce() of all packs: the sums below are valid until the next
  // contribution; on a device for work that is enqueued behind this.
  virtual absl::Status Combine() = 0;
  // After Combine(): blocks until the sums are there. Only then is it known on
  // the host that no collective has failed.
  virtual absl::Status Await() = 0;

  // The tensor in which Combine() leaves the sum of an item. Host items are on
  // the host, others where the packs are.
  virtual Tensor SumOf(int item, const TensorType& type) = 0;
  // Multiplies a sum.
  virtual absl::Status Scale(Tensor* sum, const PackScale& scale) = 0;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_PACK_MEMORY_H_
