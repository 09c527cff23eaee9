#ifndef COMMON_LEARN_NN_IMAGE_RESCALING_H_
#define COMMON_LEARN_NN_IMAGE_RESCALING_H_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "common/learn/nn/layer.h"

namespace muster {

// One number for all channels, or one for each: 0.5, or {0.5, 0.25, 1}.
class ChannelNumbers {
 public:
  ChannelNumbers(double for_all) : values_{for_all} {}       // NOLINT
  ChannelNumbers(std::initializer_list<double> of_channels)  // NOLINT
      : values_(of_channels) {}
  ChannelNumbers(std::vector<double> of_channels)  // NOLINT
      : values_(std::move(of_channels)) {}

  const std::vector<double>& values() const { return values_; }

 private:
  std::vector<double> values_;
};

struct RescalingOptions {
  ChannelNumbers offset = 0.0;
  std::string name = "";
};

//   y = x * scale + offset
//
// Integers are converted to float32. Accepts any shape; the output has the
// shape of the input. Several numbers belong to the channels, the extents of
// the last axis. No weights.
//
// Source: keras.layers.Rescaling.
class RescalingLayer : public Layer {
 public:
  RescalingLayer(const ChannelNumbers& scale, const RescalingOptions& options)
      : Layer(options.name),
        scale_(scale.values()),
        offset_(options.offset.values()) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  bool keeps_mask() const override { return true; }
  Precision precision() const override { return Precision::kFloat32; }
  Value Call(Value x, const CallContext& context) override;

 private:
  std::vector<double> scale_;
  std::vector<double> offset_;
};

// Equivalent to: keras.layers.Rescaling.
LayerPtr Rescaling(const ChannelNumbers& scale,
                   const RescalingOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_RESCALING_H_
