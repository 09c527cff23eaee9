#ifndef COMMON_LEARN_NN_IMAGE_RESCALING_H_
#define COMMON_LEARN_NN_IMAGE_RESCALING_H_

#include <string>

#include "common/learn/nn/layer.h"

namespace muster {

struct RescalingOptions {
  double offset = 0;
  std::string name = "";
};

//   y = x * scale + offset
//
// Integers are converted to float32. Accepts any shape; the output has the
// shape of the input. No weights.
//
// Source: keras.layers.Rescaling.
class RescalingLayer : public Layer {
 public:
  RescalingLayer(double scale, const RescalingOptions& options)
      : Layer(options.name), scale_(scale), offset_(options.offset) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  bool keeps_mask() const override { return true; }
  Precision precision() const override { return Precision::kFloat32; }
  Value Call(Value x, const CallContext& context) override;

 private:
  double scale_;
  double offset_;
};

// Equivalent to: keras.layers.Rescaling.
LayerPtr Rescaling(double scale, const RescalingOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_RESCALING_H_
