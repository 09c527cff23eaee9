#ifndef COMMON_LEARN_NN_ZERO_PADDING_H_
#define COMMON_LEARN_NN_ZERO_PADDING_H_

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

// Visits margins, which are one number for all sides, two for height and width,
// or four for top, bottom, left and right.
void VisitMargins2D(ConfigVisitor& visitor, ConfigName name,
                    Margins2D& margins);

struct ZeroPadding2DOptions {
  std::string name = "";
};

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

}  // namespace muster

#endif  // COMMON_LEARN_NN_ZERO_PADDING_H_
