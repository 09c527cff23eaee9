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
  // The number of parts of the global batch. 0 means one per replica, combined
  // in the communicator's order.
  int count = 0;
  // The number of parts of each rank, numbered rank by rank. Empty if `count`
  // is 0.
  std::vector<int> count_of_rank = {};
};

// The places of the items of all leaves. A pack contains the same layout for
// each leaf, one leaf after another.
struct PackLayout {
  struct Pack {
    std::string name = {};  // "dense/kernel and 3 more".
    int64_t stride = 0;     // Elements from one leaf to the next.
    std::vector<int64_t> element_counts = {};  // By rank: total of its leaves.
    // Each rank needs the sums of gradients only within its
    // Communicator::PartOf() the pack; others are unspecified.
    bool is_scattered = false;
    // All ranks need the sums from this element of the pack on: those of the
    // trailer.
    int64_t trailer_begin = 0;
  };

  // `names` are the names of the gradients. A replica reads and writes the
  // items from `host_items_begin` to `host_items_end` on the host.
  // `scattered_packs` says which packs are scattered; empty if none is.
  PackLayout(PackPlan plan, const std::vector<std::string>& names,
             int host_items_begin, int host_items_end, const Leaves& leaves,
             int rank, const std::vector<bool>& scattered_packs);

  bool has_fixed_leaves() const { return fixed_leaf_count > 0; }
  bool IsHostItem(int item) const {
    return item >= host_items_begin && item < host_items_end;
  }
  size_t SizeBytes(int pack) const {
    return packs[pack].stride * leaf_count * SizeOf(plan.packs[pack].dtype);
  }
  // Returns the offset of an item in the memory of its pack.
  size_t OffsetBytes(int item, int leaf) const;

  PackPlan plan;
  int host_items_begin = 0;
  int host_items_end = 0;
  int fixed_leaf_count = 0;
  int leaf_count = 1;
  int own_leaf_begin = 0;  // First leaf of this rank.
  int own_leaf_count = 1;
  std::vector<Pack> packs;
};

// A factor for numbers in a pack.
struct PackScale {
  double value = 1;
  // If not null, the device reads the factor here when it runs the work. Only
  // for packs on a device.
  const double* on_device = nullptr;
};

// The memory of one replica's packs, on the host or on a GPU, and the
// collectives on it. PackExchange creates and uses it. `leaf` counts the leaves
// of this rank.
//
// Seal() of a pack is followed by Reduce(), which another thread than that of
// the other functions may call. Otherwise not thread-safe. Errors are those of
// the communicator and of the device.
class PackMemory {
 public:
  virtual ~PackMemory() = default;

  // A collective.
  virtual absl::Status Allocate() = 0;

  // Sets an item to value * scale, or to zeros if the scale is 0. Scales other
  // than 0 and 1 require a floating dtype. On a device, `value` may be in
  // pinned memory that earlier work of the stream writes.
  virtual absl::Status Contribute(int item, int leaf, const Tensor& value,
                                  const PackScale& scale) = 0;
  virtual absl::Status ContributeZeros(int item, int leaf,
                                       size_t size_bytes) = 0;
  // Returns the memory in which the caller writes a host item before Seal().
  virtual uint8_t* HostContribution(int item, int leaf) = 0;

  // Called when all items of a pack have been contributed.
  virtual absl::Status Seal(int pack) = 0;
  // Combines a pack over all replicas.
  virtual absl::Status Reduce(int pack) = 0;
  // Called after Reduce() of all packs. The sums below are then valid until the
  // next contribution; on a device for work that is enqueued later.
  virtual absl::Status Combine() = 0;
  // Called after Combine(): blocks until the sums are available. Only when it
  // returns has the host verified that no collective failed.
  virtual absl::Status Await() = 0;

  // Returns the tensor in which Combine() stores the sum of an item. Host items
  // are on the host, other items are in the memory of the packs.
  virtual Tensor SumOf(int item, const TensorType& type) = 0;
  // Multiplies a sum.
  virtual absl::Status Scale(Tensor* sum, const PackScale& scale) = 0;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_PACK_MEMORY_H_
