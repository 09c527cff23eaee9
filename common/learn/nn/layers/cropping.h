#ifndef COMMON_LEARN_NN_LAYERS_CROPPING_H_
#define COMMON_LEARN_NN_LAYERS_CROPPING_H_

#include <array>
#include <cstdint>
#include <string>

#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/zero_padding.h"

// Layers that take off margins, the inverse of ZeroPadding2D and ZeroPadding3D
// (zero_padding.h), and both directions for sequences. No weights.
namespace muster {

// Steps at both ends of a sequence: `1`, or `{before, after}`.
struct Margins1D {
  Margins1D(int64_t both) : Margins1D(both, both) {}  // NOLINT: see above.
  Margins1D(int64_t before, int64_t after) : before(before), after(after) {}

  int64_t before;
  int64_t after;
};

struct MarginOptions {
  std::string name = "";
};

// Input [batch, time, channels], output [batch, before + time + after,
// channels].
//
// Source: keras.layers.ZeroPadding1D.
class ZeroPadding1DLayer : public Layer {
 public:
  ZeroPadding1DLayer(Margins1D padding, const MarginOptions& options)
      : Layer(options.name), padding_(padding) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  Margins1D padding_;
};

// Takes off steps. Input [batch, time, channels], output [batch, time - before
// - after, channels], of at least one step. `time` must be known.
//
// Source: keras.layers.Cropping1D.
class Cropping1DLayer : public Layer {
 public:
  Cropping1DLayer(Margins1D cropping, const MarginOptions& options)
      : Layer(options.name), cropping_(cropping) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  Margins1D cropping_;
};

// Takes off rows and columns of images [batch, height, width, channels], of
// which at least one each is left. The extents must be known.
//
// Source: keras.layers.Cropping2D.
class Cropping2DLayer : public Layer {
 public:
  Cropping2DLayer(const Margins2D& cropping, const MarginOptions& options)
      : Layer(options.name), cropping_(cropping) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  Margins2D cropping_;
};

// As Cropping2DLayer, for volumes [batch, depth, height, width, channels].
//
// Source: keras.layers.Cropping3D.
class Cropping3DLayer : public Layer {
 public:
  Cropping3DLayer(const Margins3D& cropping, const MarginOptions& options)
      : Layer(options.name), cropping_(cropping) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  Margins3D cropping_;
};

// Equivalent to: the functions of the same names in keras.layers.
LayerPtr ZeroPadding1D(Margins1D padding = 1,
                       const MarginOptions& options = {});
LayerPtr Cropping1D(Margins1D cropping = 1, const MarginOptions& options = {});
LayerPtr Cropping2D(const Margins2D& cropping = 0,
                    const MarginOptions& options = {});
LayerPtr Cropping3D(const Margins3D& cropping = 1,
                    const MarginOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_CROPPING_H_
