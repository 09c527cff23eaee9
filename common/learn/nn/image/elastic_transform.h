#ifndef COMMON_LEARN_NN_IMAGE_ELASTIC_TRANSFORM_H_
#define COMMON_LEARN_NN_IMAGE_ELASTIC_TRANSFORM_H_

#include <cstdint>
#include <string>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/image_ops.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/layer.h"

namespace muster {

struct RandomElasticTransformOptions {
  // How far pixels move: a number is drawn from it for the batch.
  UnitFactor scale = 1.0;  // In [0, 1].
  Interpolation interpolation = Interpolation::kBilinear;
  FillMode fill_mode = FillMode::kReflect;
  double fill_value = 0;
  ValueRange value_range = {};  // All pixels are clipped to it.
  uint64_t seed = 0;            // 0: derived from the model's.
  std::string name = "";
};

// Distorts each image with a probability that is drawn from `factor`, in [0,
// 1]: pixels move along the diagonal by normal noise that is blurred, as in
// Keras, which draws the same noise for both axes. Formulas:
// internal::ElasticTransform(). If the upper end of the factor or of the scale
// is 0, the layer returns its input.
//
// Keras' fill mode "mirror" is refused.
//
// Source: Simard et al., "Best Practices for Convolutional Neural Networks",
// ICDAR 2003; keras.layers.RandomElasticTransform.
class RandomElasticTransformLayer : public AugmentationLayer {
 public:
  RandomElasticTransformLayer(const UnitFactor& factor,
                              const RandomElasticTransformOptions& options)
      : AugmentationLayer(options.name, options.seed),
        factor_(factor),
        options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;

 private:
  UnitFactor factor_;
  RandomElasticTransformOptions options_;
};

// Equivalent to: keras.layers.RandomElasticTransform.
LayerPtr RandomElasticTransform(
    const UnitFactor& factor = 1.0,
    const RandomElasticTransformOptions& options = {});

namespace internal {

struct ElasticStrength {
  Value scale;           // One number for all images: [1].
  double scale_max = 1;  // What it may be at most.
};
// Samples pixel (x, y) of images [batch, height, width, channels] at (x + d, y
// + d), where d is `noise`, [batch, height, width], times alpha * sigma and
// blurred with standard deviation sigma over 6 floor(sigma) + 1 pixels:
//   alpha = 0.1 * scale * max(height, width)
//   sigma = 0.05 * scale * min(height, width)
// Positions beyond an edge are those of keras.ops.image.map_coordinates with
// TensorFlow: kReflect reflects below 0 about the first pixel, and beyond the
// last pixel about its edge.
Value ElasticTransform(Value images, Value noise,
                       const ElasticStrength& strength,
                       const ImageTransformOptions& options);

}  // namespace internal

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_ELASTIC_TRANSFORM_H_
