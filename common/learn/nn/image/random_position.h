#ifndef COMMON_LEARN_NN_IMAGE_RANDOM_POSITION_H_
#define COMMON_LEARN_NN_IMAGE_RANDOM_POSITION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/compute/ops/image_ops.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/layer.h"

// Random translations, shears, crops and erased parts of images; what they have
// in common: augmentation.h.
//
// Source: the layers of the same names in keras.layers.
namespace muster {

struct RandomResamplingOptions {
  FillMode fill_mode = FillMode::kReflect;
  Interpolation interpolation = Interpolation::kBilinear;
  double fill_value = 0;
  uint64_t seed = 0;  // 0: derived from the model's.
  std::string name = "";
};

// Moves each image down and to the right, by shares of its height and of its
// width that are drawn from the factors, in [-1, 1]. The output has the shape
// of the input.
class RandomTranslationLayer : public AugmentationLayer {
 public:
  RandomTranslationLayer(const RandomFactor& height_factor,
                         const RandomFactor& width_factor,
                         const RandomResamplingOptions& options)
      : AugmentationLayer(options.name, options.seed),
        height_factor_(height_factor),
        width_factor_(width_factor),
        options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;

 private:
  RandomFactor height_factor_;
  RandomFactor width_factor_;
  RandomResamplingOptions options_;
};

// Equivalent to: keras.layers.RandomTranslation.
LayerPtr RandomTranslation(const RandomFactor& height_factor,
                           const RandomFactor& width_factor,
                           const RandomResamplingOptions& options = {});

// Shears each image: the pixel at (x, y) is sampled at (x + s u y, y + s v x).
// u is drawn from x_factor and v from y_factor; the sign s is -1 or 1. A factor
// is in [-1, 1] and may not be one number below 0. The output has the shape of
// the input.
class RandomShearLayer : public AugmentationLayer {
 public:
  RandomShearLayer(const RandomFactor& x_factor, const RandomFactor& y_factor,
                   const RandomResamplingOptions& options)
      : AugmentationLayer(options.name, options.seed),
        x_factor_(x_factor),
        y_factor_(y_factor),
        options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;

 private:
  RandomFactor x_factor_;
  RandomFactor y_factor_;
  RandomResamplingOptions options_;
};

// Equivalent to: keras.layers.RandomShear.
LayerPtr RandomShear(const RandomFactor& x_factor = 0.0,
                     const RandomFactor& y_factor = 0.0,
                     const RandomResamplingOptions& options = {});

struct RandomPerspectiveOptions {
  double scale = 1;  // In [0, 1].
  Interpolation interpolation = Interpolation::kBilinear;
  double fill_value = 0;
  uint64_t seed = 0;  // 0: derived from the model's.
  std::string name = "";
};

// Looks at each image from another direction, with a probability that is drawn
// from `factor`, in [0, 1]: each corner but the first one moves by up to scale
// / 2 of its distance from the first one, along both axes. Images have at least
// two rows and two columns. The output has the shape of the input.
//
// Source: keras.layers.RandomPerspective.
class RandomPerspectiveLayer : public AugmentationLayer {
 public:
  RandomPerspectiveLayer(const UnitFactor& factor,
                         const RandomPerspectiveOptions& options)
      : AugmentationLayer(options.name, options.seed),
        factor_(factor),
        options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;

 private:
  UnitFactor factor_;
  RandomPerspectiveOptions options_;
};

// Equivalent to: keras.layers.RandomPerspective.
LayerPtr RandomPerspective(const UnitFactor& factor = 1.0,
                           const RandomPerspectiveOptions& options = {});

namespace internal {

// By how much corners of images move, [batch, 1, 1, 1], as shares of the
// distance from the first corner: the second one of the first row, the first
// one of the last row, and both coordinates of the last one.
struct CornerShifts {
  Value right;
  Value bottom;
  Value last_x;
  Value last_y;
};
// Projects images [batch, height, width, channels] so that their corners move.
// Shifts are above -1.
Value ChangePerspective(Value images, const CornerShifts& shifts,
                        const ImageTransformOptions& options);

}  // namespace internal

struct RandomCropOptions {
  uint64_t seed = 0;  // 0: derived from the model's.
  std::string name = "";
};

// Takes a part of `height` x `width` pixels at a position that is drawn for the
// whole batch, if the images are higher and wider. Otherwise takes the central
// part, as far as there are pixels, and resizes it bilinearly.
//
// Input [batch, any height, any width, channels], output [batch, height, width,
// channels] while training. Otherwise the layer returns its input, as in Keras;
// CenterCrop makes inputs of the same size.
class RandomCropLayer : public AugmentationLayer {
 public:
  RandomCropLayer(int64_t height, int64_t width,
                  const RandomCropOptions& options)
      : AugmentationLayer(options.name, options.seed),
        height_(height),
        width_(width) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;

 private:
  Value CropAtRandom(Value x, ImageDraws& draws) const;

  int64_t height_;
  int64_t width_;
};

// Equivalent to: keras.layers.RandomCrop.
LayerPtr RandomCrop(int64_t height, int64_t width,
                    const RandomCropOptions& options = {});

struct RandomErasingOptions {
  // The share of the image that the box would have as a square image: the
  // box has sqrt(u) of the height and sqrt(v) of the width.
  UnitFactor scale = {0.02, 0.33};
  // One number, or three, one for each channel. Empty: normal noise times the
  // greatest value of the range.
  std::vector<double> fill_value = {};
  ValueRange value_range = {};  // The filling is clipped to it.
  uint64_t seed = 0;            // 0: derived from the model's.
  std::string name = "";
};

// Fills a box at a random position of each image, with a probability that is
// drawn from `factor`. Factor and scale are in [0, 1]. The output has the shape
// of the input.
//
// Source: Zhong et al., "Random Erasing Data Augmentation", 2017
// (arXiv:1708.04896); keras.layers.RandomErasing.
class RandomErasingLayer : public AugmentationLayer {
 public:
  RandomErasingLayer(const UnitFactor& factor,
                     const RandomErasingOptions& options)
      : AugmentationLayer(options.name, options.seed),
        factor_(factor),
        options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;
  std::vector<int64_t> channel_counts() const override;

 private:
  Value Fill(Value x, ImageDraws& draws) const;

  UnitFactor factor_;
  RandomErasingOptions options_;
};

// Equivalent to: keras.layers.RandomErasing.
LayerPtr RandomErasing(const UnitFactor& factor = 1.0,
                       const RandomErasingOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_RANDOM_POSITION_H_
