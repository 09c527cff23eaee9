#ifndef COMMON_LEARN_NN_LAYERS_MARGINS_H_
#define COMMON_LEARN_NN_LAYERS_MARGINS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/learn/nn/layer.h"

// Layers that add margins of zeros to sequences [batch, time, channels], images
// [batch, height, width, channels] and volumes [batch, depth, height, width,
// channels], or that remove margins. No weights.
namespace muster {

// Elements before and after the others of an axis.
using Margin = std::array<int64_t, 2>;

// Margins at both ends of a sequence: `1`, or `{before, after}`.
struct Margins1D {
  Margins1D(int64_t both) : Margins1D(both, both) {}  // NOLINT: see above.
  Margins1D(int64_t before, int64_t after) : time({before, after}) {}

  std::vector<Margin*> axes() { return {&time}; }

  Margin time;
};

// Margins around an image. `1`: on every side. `{1, 2}`: 1 above and below, 2
// on the left and right. `{{0, 1}, {2, 3}}`: {above, below}, {left, right}.
struct Margins2D {
  Margins2D(int64_t all) : Margins2D(all, all) {}  // NOLINT: see above.
  Margins2D(int64_t height, int64_t width)
      : Margins2D({height, height}, {width, width}) {}
  Margins2D(Margin height, Margin width) : height(height), width(width) {}

  std::vector<Margin*> axes() { return {&height, &width}; }

  Margin height;
  Margin width;
};

// Margins around a volume: as Margins2D, with {front, back} before the others.
struct Margins3D {
  Margins3D(int64_t all) : Margins3D(all, all, all) {}  // NOLINT: see above.
  Margins3D(int64_t depth, int64_t height, int64_t width)
      : Margins3D({depth, depth}, {height, height}, {width, width}) {}
  Margins3D(Margin depth, Margin height, Margin width)
      : depth(depth), height(height), width(width) {}

  std::vector<Margin*> axes() { return {&depth, &height, &width}; }

  Margin depth;
  Margin height;
  Margin width;
};

struct MarginOptions {
  std::string name = "";
};
using ZeroPadding2DOptions = MarginOptions;
using ZeroPadding3DOptions = MarginOptions;

// Return layers that add zeros. Each spatial extent becomes before + extent +
// after.
//
// Source: keras.layers.ZeroPadding1D, ZeroPadding2D and ZeroPadding3D.
LayerPtr ZeroPadding1D(Margins1D padding = 1,
                       const MarginOptions& options = {});
LayerPtr ZeroPadding2D(const Margins2D& padding = 1,
                       const MarginOptions& options = {});
LayerPtr ZeroPadding3D(const Margins3D& padding = 1,
                       const MarginOptions& options = {});

// Return layers that remove margins. Each spatial extent, which must be known,
// becomes extent - before - after, which must be at least 1.
//
// Source: keras.layers.Cropping1D, Cropping2D and Cropping3D.
LayerPtr Cropping1D(Margins1D cropping = 1, const MarginOptions& options = {});
LayerPtr Cropping2D(const Margins2D& cropping = 0,
                    const MarginOptions& options = {});
LayerPtr Cropping3D(const Margins3D& cropping = 1,
                    const MarginOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_MARGINS_H_
