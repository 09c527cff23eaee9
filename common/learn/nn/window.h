#ifndef COMMON_LEARN_NN_WINDOW_H_
#define COMMON_LEARN_NN_WINDOW_H_

#include <array>
#include <cstdint>

#include "common/compute/ops/window_options.h"
#include "common/learn/nn/config_visitor.h"

// How layers say what windows they lay over images.
namespace muster {

// Height and width: `3`, or `{3, 1}`.
struct Size2D {
  Size2D(int64_t both) : height(both), width(both) {}  // NOLINT: see above.
  Size2D(int64_t height, int64_t width) : height(height), width(width) {}

  std::array<int64_t, 2> extents() const { return {height, width}; }

  int64_t height;
  int64_t width;
};

// Keras' paddings: none, or as many zeros as it takes for the result to have
// the size of the image over the strides, rounded up.
enum class Padding { kValid, kSame };

inline Padding2D ToPadding2D(Padding padding) {
  return padding == Padding::kSame ? Padding2D::Same() : Padding2D::Valid();
}

// An extent along each axis, all at least 1. A reader takes one number for both
// axes of an image.
void VisitSize(ConfigVisitor& visitor, ConfigName name, Size2D& size);
void VisitSize(ConfigVisitor& visitor, ConfigName name, int64_t& size);
// "valid" or "same".
void VisitPadding(ConfigVisitor& visitor, Padding& padding);

}  // namespace muster

#endif  // COMMON_LEARN_NN_WINDOW_H_
