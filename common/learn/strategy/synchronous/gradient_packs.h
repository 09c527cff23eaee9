#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_GRADIENT_PACKS_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_GRADIENT_PACKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"

namespace muster {

// How tensors are put one behind the other, so that many travel as one. Pure
// arithmetic, and the same on every replica.

struct PackItem {
  DType dtype = DType::kInvalid;
  int64_t element_count = 0;
};

struct PackPlan {
  // Where an item lies. Items begin at multiples of Buffer::kAlignmentBytes
  // from the beginning of their pack; what lies between them is always zero.
  struct Place {
    int pack = 0;
    int64_t begin = 0;  // Elements from the beginning of the pack.
  };
  struct Pack {
    DType dtype = DType::kInvalid;
    int64_t element_count = 0;  // With what lies between items.
    // The gradient with which the pack is full; the number of gradients where
    // the pack is full only at the end of the step.
    int last_gradient = 0;

    size_t size_bytes() const { return element_count * SizeOf(dtype); }
  };

  std::vector<Place> places;  // Of the gradients, then of the trailer.
  std::vector<Pack> packs;    // In the order in which they are full.
};

// Packs `gradients` in the order in which they come. A pack has one dtype; the
// next one of that dtype is begun when it has come to more than
// `bytes_per_pack` (0: never). The `trailer`, what is known only at the end of
// the step, joins the last pack of its dtype.
//
// Equivalent to: group_by_size() of tf.distribute's collective all-reduce,
// which however mixes dtypes.
PackPlan PlanPacks(absl::Span<const PackItem> gradients,
                   absl::Span<const PackItem> trailer, int64_t bytes_per_pack);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_GRADIENT_PACKS_H_
