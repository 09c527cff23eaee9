#ifndef COMMON_COMPUTE_VARIABLES_ELEMENT_SHARES_H_
#define COMMON_COMPUTE_VARIABLES_ELEMENT_SHARES_H_

#include <cstdint>
#include <vector>

namespace muster {

// The division of the elements of a variable among the ranks of a group. A rank
// applies gradients to its share only, and its optimizer slots cover no other
// elements. The ranks then exchange the new values. A value; equal on all ranks
// except for `rank`.
//
// Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training
// Trillion Parameter Models", SC 2020, stage 1.
struct ElementShares {
  int rank = 0;
  // Rank r has the elements from ends[r - 1], or 0, to ends[r]. Empty: the
  // variable is not divided, and every rank has all elements.
  std::vector<int64_t> ends = {};
  // The slot kGradientAccumulatorSlot covers the whole variable on every rank,
  // because the norm of the accumulated gradients is limited.
  bool has_whole_accumulator = false;

  bool is_divided() const { return !ends.empty(); }
  int64_t BeginOf(int of_rank) const {
    return of_rank == 0 ? 0 : ends[of_rank - 1];
  }
  int64_t CountOf(int of_rank) const {
    return ends[of_rank] - BeginOf(of_rank);
  }
  // Returns the first rank that has elements.
  int FirstOwner() const {
    int first = 0;
    while (CountOf(first) == 0) ++first;
    return first;
  }

  friend bool operator==(const ElementShares&, const ElementShares&) = default;
};

// New values of the elements from `begin` on.
struct ElementValues {
  int64_t begin = 0;
  int64_t count = 0;
  const uint8_t* data = nullptr;  // Borrowed; `count` elements.
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ELEMENT_SHARES_H_
