#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_MERGE_SORT_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_MERGE_SORT_H_

#include "common/core/device/device_language.h"

// A merge sort of positions 0 to length - 1 with one thread for each. The first
// pass sorts short runs of positions, and each later pass merges pairs of runs.
// `is_before(a, b)` is a strict order in which no two positions are equal, so
// that each position has a unique place.
namespace muster::internal {

// Returns the place of position i after the first pass.
template <typename IsBefore>
__device__ int64_t PlaceInSortedRun(int32_t i, int64_t run, int64_t length,
                                    IsBefore is_before) {
  const int64_t begin = i / run * run;
  int64_t before_count = 0;
  for (int64_t j = begin; j < begin + run && j < length; ++j) {
    before_count += is_before(static_cast<int32_t>(j), i);
  }
  return begin + before_count;
}

// Returns where from[place] goes when pairs of runs of `run` positions are
// merged: it moves by the number of positions in the other run of its pair that
// come before it.
template <typename IsBefore>
__device__ int64_t PlaceInMergedRun(const int32_t* from, int64_t place,
                                    int64_t run, int64_t length,
                                    IsBefore is_before) {
  const int32_t i = from[place];
  const int64_t index = place / run;
  // Begin of the other run of the pair.
  const int64_t begin = (index ^ 1) * run;
  int64_t low = begin < length ? begin : length;
  int64_t high = begin + run < length ? begin + run : length;
  const int64_t first = low;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (is_before(from[middle], i)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return index / 2 * 2 * run + place % run + (low - first);
}

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_MERGE_SORT_H_
