#ifndef COMMON_LEARN_NN_WINDOW_H_
#define COMMON_LEARN_NN_WINDOW_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "common/compute/ops/window_options.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"

// Options of layers that apply windows to sequences, images and volumes.
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

  std::array<int64_t, 3> extents() const { return {depth, height, width}; }

  int64_t depth;
  int64_t height;
  int64_t width;
};

// The number of spatial axes that windows of the size `Size` have: 1 for the
// int64_t of sequences, 2 for Size2D and 3 for Size3D.
template <typename Size>
inline constexpr int kAxisCount = 1;
template <>
inline constexpr int kAxisCount<Size2D> = 2;
template <>
inline constexpr int kAxisCount<Size3D> = 3;

// Returns the extent of each spatial axis.
template <typename Size>
std::array<int64_t, kAxisCount<Size>> ExtentsOf(const Size& size) {
  return size.extents();
}
inline std::array<int64_t, 1> ExtentsOf(int64_t size) { return {size}; }

template <typename Size>
int64_t SmallestExtent(const Size& size) {
  const auto extents = ExtentsOf(size);
  return *std::min_element(extents.begin(), extents.end());
}

namespace internal {

// Clamps an invalid extent for the shape of a weight. Layer::Call() reports it.
inline int64_t AtLeastZero(int64_t extent) {
  return std::max<int64_t>(extent, 0);
}

// Returns the shape of a kernel: AtLeastZero() of the extents of `size`, then
// `others`.
template <typename Size>
Shape KernelShape(const Size& size, std::initializer_list<int64_t> others) {
  Shape shape;
  for (const int64_t extent : ExtentsOf(size)) {
    shape.AddDim(AtLeastZero(extent));
  }
  for (const int64_t extent : others) shape.AddDim(extent);
  return shape;
}

}  // namespace internal

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
