#ifndef COMMON_LEARN_NN_IMAGE_RESIZING_H_
#define COMMON_LEARN_NN_IMAGE_RESIZING_H_

#include <cstdint>
#include <string>

#include "common/compute/ops/image_ops.h"
#include "common/learn/nn/layer.h"

namespace muster {

struct ResizingOptions {
  Interpolation interpolation = Interpolation::kBilinear;
  // Crops the centre of the image to the target aspect ratio before resizing,
  // to avoid distortion.
  bool crop_to_aspect_ratio = false;
  // Pads the image to the target aspect ratio, centred, before resizing. At
  // most one of the two may be set.
  bool pad_to_aspect_ratio = false;
  double fill_value = 0;  // Of the padding.
  std::string name = "";
};

// Resizes images. Input [batch, any height, any width, channels], output
// [batch, height, width, channels]. The dtype is kept: integers are
// interpolated as floats and rounded. Pixel centres have half-integer
// coordinates. No weights.
//
// Source: keras.layers.Resizing.
class ResizingLayer : public Layer {
 public:
  ResizingLayer(int64_t height, int64_t width, const ResizingOptions& options)
      : Layer(options.name),
        height_(height),
        width_(width),
        options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Precision precision() const override { return Precision::kFloat32; }
  Value Call(Value x, const CallContext& context) override;

 private:
  Value PadToAspectRatio(Value x) const;

  int64_t height_;
  int64_t width_;
  ResizingOptions options_;
};

// Equivalent to: keras.layers.Resizing with antialias=False.
LayerPtr Resizing(int64_t height, int64_t width,
                  const ResizingOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_RESIZING_H_
