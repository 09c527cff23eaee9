#ifndef COMMON_COMPUTE_KERNELS_CPU_BATCH_MOMENTS_H_
#define COMMON_COMPUTE_KERNELS_CPU_BATCH_MOMENTS_H_

#include <algorithm>
#include <cstdint>

#include "common/compute/kernels/vectorized.h"

// Mean and variance of each channel over many rows, computed block by block.
// The blocks, and so the bits of the result, do not depend on the number of
// threads.
namespace muster {

// A block of this size fits into the L2 cache.
inline constexpr int64_t kMomentsBlockElements = 16 << 10;

// Returns the number of rows of `channels` channels in a block.
inline int64_t MomentsBlockRows(int64_t channels) {
  return std::max<int64_t>(
      8, kMomentsBlockElements / std::max<int64_t>(channels, 1));
}

namespace internal {

// The sum of each channel's elements.
struct SumRows {
  MUSTER_INLINE static void Run(int64_t rows, int64_t channels, const float* x,
                                float* sums) {
    for (int64_t c = 0; c < channels; ++c) sums[c] = 0;
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4, x += 4 * channels) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t c = 0; c < channels; ++c) {
        sums[c] += (x[c] + x[c + channels]) +
                   (x[c + 2 * channels] + x[c + 3 * channels]);
      }
    }
    for (; r < rows; ++r, x += channels) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t c = 0; c < channels; ++c) sums[c] += x[c];
    }
  }
};

// The sum of squared distances from `center` for each channel.
struct SumSquares {
  MUSTER_INLINE static void Run(int64_t rows, int64_t channels, const float* x,
                                const float* center, float* squares) {
    for (int64_t c = 0; c < channels; ++c) squares[c] = 0;
    int64_t r = 0;
    for (; r + 2 <= rows; r += 2, x += 2 * channels) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t c = 0; c < channels; ++c) {
        const float first = x[c] - center[c];
        const float second = x[c + channels] - center[c];
        squares[c] += first * first + second * second;
      }
    }
    for (; r < rows; ++r, x += channels) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t c = 0; c < channels; ++c) {
        const float distance = x[c] - center[c];
        squares[c] += distance * distance;
      }
    }
  }
};

}  // namespace internal

// Computes the mean of each channel and the sum of squared distances from it
// for one block of `rows` rows.
inline void BlockMoments(int64_t rows, int64_t channels, const float* x,
                         float* means, float* squares) {
  RunVectorized<internal::SumRows>(rows, channels, x, means);
  for (int64_t c = 0; c < channels; ++c) {
    means[c] /= static_cast<float>(rows);
  }
  RunVectorized<internal::SumSquares>(
      rows, channels, x, static_cast<const float*>(means), squares);
}

// Combines the moments of blocks [0, block_count), one after another in `means`
// and `squares`, into those of all rows (Chan, Golub and LeVeque, 1979).
// rows(b) is the number of rows in block b.
template <typename Rows>
void CombineMoments(int64_t block_count, int64_t channels, const float* means,
                    const float* squares, Rows rows, float* mean,
                    float* variance) {
  for (int64_t c = 0; c < channels; ++c) {
    double count = 0;
    double center = 0;
    double spread = 0;
    for (int64_t b = 0; b < block_count; ++b) {
      const int64_t at = b * channels + c;
      const auto more = static_cast<double>(rows(b));
      const double distance = means[at] - center;
      const double sum = count + more;
      center += distance * more / sum;
      spread += squares[at] + distance * distance * count * more / sum;
      count = sum;
    }
    mean[c] = static_cast<float>(center);
    variance[c] = static_cast<float>(spread / count);
  }
}

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CPU_BATCH_MOMENTS_H_
