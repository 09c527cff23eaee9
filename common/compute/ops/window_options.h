#ifndef COMMON_COMPUTE_OPS_WINDOW_OPTIONS_H_
#define COMMON_COMPUTE_OPS_WINDOW_OPTIONS_H_

#include <array>
#include <cstdint>

#include "common/core/tensor/attributes.h"
#include "common/core/tensor/window.h"

namespace muster {

// The padding of images before windows are applied.
struct Padding2D {
  PaddingKind kind = PaddingKind::kValid;
  // For kExplicit.
  int64_t top = 0;
  int64_t bottom = 0;
  int64_t left = 0;
  int64_t right = 0;

  static Padding2D Valid() { return {}; }
  static Padding2D Same() { return {.kind = PaddingKind::kSame}; }
  static Padding2D Explicit(int64_t top, int64_t bottom, int64_t left,
                            int64_t right) {
    return {PaddingKind::kExplicit, top, bottom, left, right};
  }
};

namespace internal {

// Returns the attributes that WindowOptions::FromAttributes() reads.
Attributes WindowAttributes(const std::array<int64_t, 2>& strides,
                            const std::array<int64_t, 2>& dilations,
                            const Padding2D& padding);

}  // namespace internal
}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_WINDOW_OPTIONS_H_
