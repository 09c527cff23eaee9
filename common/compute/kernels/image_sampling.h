#ifndef COMMON_COMPUTE_KERNELS_IMAGE_SAMPLING_H_
#define COMMON_COMPUTE_KERNELS_IMAGE_SAMPLING_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/core/tensor/resize.h"

// Resampling along one axis of an image. Computed in float32, as in TensorFlow.
namespace muster::internal {

// Returns one tap for each of `to` pixels of a resized axis of `from` pixels.
// Taps of the nearest pixel have an upper weight of 0.
inline std::vector<BilinearTap> ResizeTaps(int64_t from, int64_t to,
                                           bool is_bilinear) {
  if (is_bilinear) return BilinearTaps(from, to);
  std::vector<BilinearTap> taps;
  for (const int64_t pixel : NearestTaps(from, to)) {
    taps.push_back({pixel, pixel, 0});
  }
  return taps;
}

enum class Border { kConstant, kNearest, kReflect, kWrap };

// Maps a coordinate beyond the edges to the axis. Returns coordinates within
// [0, extent - 1], and all coordinates with a constant border, unchanged.
inline float MapToAxis(Border border, float position, int64_t extent) {
  const auto last = static_cast<float>(extent - 1);
  if (border == Border::kConstant || (position >= 0 && position <= last)) {
    return position;
  }
  // NaN and coordinates without a fractional part cannot be mapped.
  if (extent <= 1 || !(std::fabs(position) < 0x1p31f)) {
    return position > 0 ? last : 0;
  }
  const auto whole = static_cast<float>(extent);
  if (border == Border::kReflect) {
    const float period = 2 * whole;
    if (position < 0) {
      position += period * std::floor(-position / period);
      position = position < -whole ? position + period : -position - 1;
    } else {
      position -= period * std::floor(position / period);
      if (position >= whole) position = period - position - 1;
    }
  } else if (border == Border::kWrap) {
    // Divides by the last position, not the extent, as TensorFlow does.
    position += position < 0 ? whole * (std::floor(-position / last) + 1)
                             : -whole * std::floor(position / last);
  }
  return std::clamp(position, 0.0f, last);
}

// True if `pixel` is within [0, extent). False for NaN.
inline bool IsOnAxis(float pixel, int64_t extent) {
  return pixel >= 0 && pixel < static_cast<float>(extent);
}

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_IMAGE_SAMPLING_H_
