#ifndef COMMON_LEARN_NN_IMAGE_TILE_EQUALIZATION_H_
#define COMMON_LEARN_NN_IMAGE_TILE_EQUALIZATION_H_

#include <cstdint>
#include <string>

#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/window.h"

namespace muster {

struct ContrastLimitedAdaptiveHistogramEqualizationOptions {
  ValueRange value_range = {};
  // By how much a value may be more frequent than the average, where values are
  // counted. Not above 0: no limit.
  double clip_limit = 4;
  // Into how many tiles an image is divided.
  Size2D tile_grid_size = 8;
  std::string name = "";
};

// Makes the values of each channel as frequent as each other in each of the
// tiles of an image (CLAHE), while training and otherwise. A pixel gets what
// the four tiles around it make of its value, weighted by their distances.
//
// Images are [batch, height, width, channels] of known extents; integers are
// converted to float32. Images that the grid does not divide are continued at
// the bottom and on the right by their reflection, by at most their own size.
// No gradient flows through the layer. No weights.
//
// Source: Zuiderveld, "Contrast Limited Adaptive Histogram Equalization",
// Graphics Gems IV, 1994;
// keras.layers.ContrastLimitedAdaptiveHistogramEqualization.
class ContrastLimitedAdaptiveHistogramEqualizationLayer : public Layer {
 public:
  explicit ContrastLimitedAdaptiveHistogramEqualizationLayer(
      const ContrastLimitedAdaptiveHistogramEqualizationOptions& options)
      : Layer(options.name), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Precision precision() const override { return Precision::kFloat32; }
  Value Call(Value x, const CallContext& context) override;

 private:
  ContrastLimitedAdaptiveHistogramEqualizationOptions options_;
};

// Equivalent to: keras.layers.ContrastLimitedAdaptiveHistogramEqualization.
LayerPtr ContrastLimitedAdaptiveHistogramEqualization(
    const ContrastLimitedAdaptiveHistogramEqualizationOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_TILE_EQUALIZATION_H_
