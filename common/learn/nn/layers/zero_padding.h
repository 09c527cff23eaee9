#ifndef COMMON_LEARN_NN_LAYERS_ZERO_PADDING_H_
#define COMMON_LEARN_NN_LAYERS_ZERO_PADDING_H_

#include <array>
#include <cstdint>
#include <string>

#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {

// Padding around an image. `1`: on every side. `{1, 2}`: 1 above and below, 2
// on the left and right. `{{0, 1}, {2, 3}}`: {above, below}, {left, right}.
struct Margins2D {
  Margins2D(int64_t all) : Margins2D(all, all) {}  // NOLINT: see above.
  Margins2D(int64_t height, int64_t width)
      : Margins2D({height, height}, {width, width}) {}
  Margins2D(std::array<int64_t, 2> height, std::array<int64_t, 2> width)
      : height(height), width(width) {}

  std::array<int64_t, 2> height;
  std::array<int64_t, 2> width;
};

// Padding around a volume: as Margins2D, with {front, back} before the others.
struct Margins3D {
  Margins3D(int64_t all) : Margins3D(all, all, all) {}  // NOLINT: see above.
  Margins3D(int64_t depth, int64_t height, int64_t width)
      : Margins3D({depth, depth}, {height, height}, {width, width}) {}
  Margins3D(std::array<int64_t, 2> depth, std::array<int64_t, 2> height,
            std::array<int64_t, 2> width)
      : depth(depth), height(height), width(width) {}

  std::array<int64_t, 2> depth;
  std::array<int64_t, 2> height;
  std::array<int64_t, 2> width;
};

// Visits margins, which are one number for all sides, one for each axis, or two
// for each axis: top, bottom, left and right of an image.
void VisitMargins(ConfigVisitor& visitor, ConfigName name, Margins2D& margins);
void VisitMargins(ConfigVisitor& visitor, ConfigName name, Margins3D& margins);

struct ZeroPadding2DOptions {
  std::string name = "";
};
using ZeroPadding3DOptions = ZeroPadding2DOptions;

// Adds zeros around images. Input [batch, height, width, channels], output
// [batch, above + height + below, left + width + right, channels]. No weights.
//
// Source: keras.layers.ZeroPadding2D.
class ZeroPadding2DLayer : public Layer {
 public:
  ZeroPadding2DLayer(const Margins2D& padding,
                     const ZeroPadding2DOptions& options)
      : Layer(options.name), padding_(padding) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  Margins2D padding_;
};

// Equivalent to: keras.layers.ZeroPadding2D.
LayerPtr ZeroPadding2D(const Margins2D& padding = 1,
                       const ZeroPadding2DOptions& options = {});

// Adds zeros around volumes. Input [batch, depth, height, width, channels],
// output [batch, front + depth + back, above + height + below, left + width +
// right, channels]. No weights.
//
// Source: keras.layers.ZeroPadding3D.
class ZeroPadding3DLayer : public Layer {
 public:
  ZeroPadding3DLayer(const Margins3D& padding,
                     const ZeroPadding3DOptions& options)
      : Layer(options.name), padding_(padding) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  Margins3D padding_;
};

// Equivalent to: keras.layers.ZeroPadding3D.
LayerPtr ZeroPadding3D(const Margins3D& padding = 1,
                       const ZeroPadding3DOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_ZERO_PADDING_H_
