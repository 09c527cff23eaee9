#ifndef COMMON_LEARN_NN_IMAGE_RANDOM_IMAGE_H_
#define COMMON_LEARN_NN_IMAGE_RANDOM_IMAGE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/compute/ops/image_ops.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/layer.h"

// Random flips, rotations and zooms of images; what they have in common:
// augmentation.h. The output has the shape of the input.
//
// Source: RandomFlip, RandomRotation and RandomZoom of keras.layers.
namespace muster {

enum class FlipMode { kHorizontal, kVertical, kHorizontalAndVertical };

struct RandomFlipOptions {
  uint64_t seed = 0;  // 0: derived from the model's.
  std::string name = "";
};

// Flips each image with probability 1/2. kHorizontal reverses the columns,
// kVertical the rows. kHorizontalAndVertical reverses both, or neither.
class RandomFlipLayer : public AugmentationLayer {
 public:
  RandomFlipLayer(FlipMode mode, const RandomFlipOptions& options)
      : AugmentationLayer(options.name, options.seed), mode_(mode) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Augment(Value x, ImageDraws& draws) override;

 private:
  FlipMode mode_;
};

// Equivalent to: keras.layers.RandomFlip.
LayerPtr RandomFlip(FlipMode mode = FlipMode::kHorizontalAndVertical,
                    const RandomFlipOptions& options = {});

struct RandomRotationOptions {
  FillMode fill_mode = FillMode::kReflect;
  Interpolation interpolation = Interpolation::kBilinear;
  double fill_value = 0;
  uint64_t seed = 0;  // 0: derived from the model's.
  std::string name = "";
};

// Rotates each image about its center by a random `factor` of a full circle.
// Positive factors rotate counterclockwise.
class RandomRotationLayer : public AugmentationLayer {
 public:
  RandomRotationLayer(const RandomFactor& factor,
                      const RandomRotationOptions& options)
      : AugmentationLayer(options.name, options.seed),
        factor_(factor),
        options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Augment(Value x, ImageDraws& draws) override;

 private:
  RandomFactor factor_;
  RandomRotationOptions options_;
};

// Equivalent to: keras.layers.RandomRotation.
LayerPtr RandomRotation(const RandomFactor& factor,
                        const RandomRotationOptions& options = {});

struct RandomZoomOptions {
  // Unset: the factor that was drawn for the height.
  std::optional<RandomFactor> width_factor = std::nullopt;
  FillMode fill_mode = FillMode::kReflect;
  Interpolation interpolation = Interpolation::kBilinear;
  double fill_value = 0;
  uint64_t seed = 0;  // 0: derived from the model's.
  std::string name = "";
};

// Scales the visible height of each image to 1 + `height_factor`, and the width
// likewise. Negative factors zoom in, positive ones zoom out. Factors must be
// in (-1, 1].
class RandomZoomLayer : public AugmentationLayer {
 public:
  RandomZoomLayer(const RandomFactor& height_factor,
                  const RandomZoomOptions& options)
      : AugmentationLayer(options.name, options.seed),
        height_factor_(height_factor),
        options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;

 private:
  RandomFactor height_factor_;
  RandomZoomOptions options_;
};

// Equivalent to: keras.layers.RandomZoom.
LayerPtr RandomZoom(const RandomFactor& height_factor,
                    const RandomZoomOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_RANDOM_IMAGE_H_
