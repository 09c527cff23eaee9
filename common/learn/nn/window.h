#ifndef COMMON_LEARN_NN_WINDOW_H_
#define COMMON_LEARN_NN_WINDOW_H_

#include <array>
#include <cstdint>
#include <optional>

#include "common/compute/ops/window_options.h"
#include "common/learn/nn/config_visitor.h"

// Options of layers that apply windows to images and sequences.
namespace muster {

// Height and width: `3`, or `{3, 1}`.
struct Size2D {
  Size2D(int64_t both) : height(both), width(both) {}  // NOLINT: see above.
  Size2D(int64_t height, int64_t width) : height(height), width(width) {}

  std::array<int64_t, 2> extents() const { return {height, width}; }

  int64_t height;
  int64_t width;
};

// Depth, height and width: `3`, or `{3, 1, 1}`.
struct Size3D {
  Size3D(int64_t all) : Size3D(all, all, all) {}  // NOLINT: see above.
  Size3D(int64_t depth, int64_t height, int64_t width)
      : depth(depth), height(height), width(width) {}

  int64_t depth;
  int64_t height;
  int64_t width;
};

// Keras' paddings. kValid: none. kSame: zeros, so that an output extent is the
// input extent divided by the stride, rounded up.
enum class Padding { kValid, kSame };

inline Padding2D ToPadding2D(Padding padding) {
  return padding == Padding::kSame ? Padding2D::Same() : Padding2D::Valid();
}

// Visits extents, which must be at least 1. A reader accepts one number for
// all axes.
void VisitSize(ConfigVisitor& visitor, ConfigName name, Size3D& size);
void VisitSize(ConfigVisitor& visitor, ConfigName name, Size2D& size);
void VisitSize(ConfigVisitor& visitor, ConfigName name, int64_t& size);
// As VisitSize(), of extents that may be absent and 0.
void VisitOptionalSize(ConfigVisitor& visitor, ConfigName name,
                       std::optional<Size3D>& size);
void VisitOptionalSize(ConfigVisitor& visitor, ConfigName name,
                       std::optional<Size2D>& size);
void VisitOptionalSize(ConfigVisitor& visitor, ConfigName name,
                       std::optional<int64_t>& size);
// "valid" or "same".
void VisitPadding(ConfigVisitor& visitor, Padding& padding);

}  // namespace muster

#endif  // COMMON_LEARN_NN_WINDOW_H_
