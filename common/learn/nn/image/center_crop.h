#ifndef COMMON_LEARN_NN_IMAGE_CENTER_CROP_H_
#define COMMON_LEARN_NN_IMAGE_CENTER_CROP_H_

#include <cstdint>
#include <string>

#include "common/learn/nn/layer.h"

namespace muster {

struct CenterCropOptions {
  std::string name = "";
};

// Takes the central part of images. Of images that are smaller than it along an
// axis, takes the greatest central part of its aspect ratio, and resizes it
// bilinearly.
//
// Input [batch, any height, any width, channels] of known extents, output
// [batch, height, width, channels]. Integers are converted to float32. No
// weights.
//
// Source: keras.layers.CenterCrop.
class CenterCropLayer : public Layer {
 public:
  CenterCropLayer(int64_t height, int64_t width,
                  const CenterCropOptions& options)
      : Layer(options.name), height_(height), width_(width) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Precision precision() const override { return Precision::kFloat32; }
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t height_;
  int64_t width_;
};

// Equivalent to: keras.layers.CenterCrop.
LayerPtr CenterCrop(int64_t height, int64_t width,
                    const CenterCropOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_CENTER_CROP_H_
