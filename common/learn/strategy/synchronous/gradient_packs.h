#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_GRADIENT_PACKS_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_GRADIENT_PACKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"

namespace muster {

// Plans how tensors are concatenated, so that many are sent together. Pure
// arithmetic, with equal results on every replica.

struct PackItem {
  DType dtype = DType::kInvalid;
  int64_t element_count = 0;
};

struct PackPlan {
  // The position of an item. Items begin at multiples of
  // Buffer::kAlignmentBytes from the beginning of their pack; the gaps are
  // always zero.
  struct Place {
    int pack = 0;
    int64_t begin = 0;  // Elements from the beginning of the pack.
  };
  struct Pack {
    DType dtype = DType::kInvalid;
    int64_t element_count = 0;  // Including gaps.
    // The gradient that completes the pack, or the number of gradients if only
    // the end of the step completes it.
    int last_gradient = 0;

    size_t size_bytes() const { return element_count * SizeOf(dtype); }
  };

  std::vector<Place> places;  // Places of the gradients, then of the trailer.
  std::vector<Pack> packs;    // In the order of completion.
};

// Adjacent items of one pack, with the gaps between them.
struct PackPart {
  int first_item = 0;
  int64_t element_count = 0;
};

// Returns the parts of packs that contain exactly the items [item_begin,
// item_end) of `items`, from which the plan was made.
std::vector<PackPart> PartsOf(const PackPlan& plan,
                              absl::Span<const PackItem> items, int item_begin,
                              int item_end);

// Packs `gradients` in the order in which they are computed. A pack has one
// dtype; the next one of that dtype begins when it exceeds `bytes_per_pack` (0
// means never). The `trailer`, which is available only at the end of the step,
// is part of the last pack of its dtype.
//
// Equivalent to: group_by_size() of tf.distribute's collective all-reduce,
// which mixes dtypes, however.
PackPlan PlanPacks(absl::Span<const PackItem> gradients,
                   absl::Span<const PackItem> trailer, int64_t bytes_per_pack);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_GRADIENT_PACKS_H_
