#ifndef COMMON_LEARN_NN_IMAGE_RANDOM_COLOR_H_
#define COMMON_LEARN_NN_IMAGE_RANDOM_COLOR_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/layer.h"

// Random changes of the colors and the sharpness of images. What they have in
// common: augmentation.h. Formulas: color.h. `u` is drawn for each image,
// uniformly from the layer's factor, unless stated otherwise.
//
// Source: the layers of the same names in keras.layers.
namespace muster {

struct RandomColorOptions {
  ValueRange value_range = {};
  uint64_t seed = 0;  // 0: derived from the model's.
  std::string name = "";
};

// How a layer of one factor changes images.
enum class ColorChange {
  kBrightness,         // Adds u * (the length of the value range).
  kContrast,           // Multiplies deviations from the mean.
  kSaturation,         // Multiplies the saturation by u / (1 - u).
  kHue,                // Adds u / 2 or -u / 2 to the hue.
  kColorDegeneration,  // Mixes: (1 - u) * image + u * gray image.
  kInvert,             // With probability u: value_range.upper - image.
  kSharpness,          // Mixes: 2 u * image + (1 - 2 u) * smooth image.
};

// RandomBrightness, RandomContrast, RandomSaturation, RandomHue,
// RandomColorDegeneration, RandomInvert and RandomSharpness.
//
// The last five take u from the factor. RandomContrast draws the multiplier
// from [1 - lower, 1 + upper). Saturation and hue need 3 channels, color
// degeneration 1 or 3.
class RandomColorLayer : public AugmentationLayer {
 public:
  RandomColorLayer(ColorChange change, const RandomFactor& factor,
                   const RandomColorOptions& options)
      : AugmentationLayer(options.name, options.seed),
        change_(change),
        factor_(factor),
        range_(options.value_range) {}

  std::string kind() const override;
  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;
  std::vector<int64_t> channel_counts() const override;

 private:
  // True if factors are in [0, 1].
  bool has_unit_factor() const;

  const ColorChange change_;
  RandomFactor factor_;
  ValueRange range_;
};

// Equivalent to: the functions of the same names in keras.layers. Factors are
// in [-1, 1] or, as UnitFactor, in [0, 1].
LayerPtr RandomBrightness(const RandomFactor& factor,
                          const RandomColorOptions& options = {});
LayerPtr RandomContrast(const UnitFactor& factor,
                        const RandomColorOptions& options = {});
LayerPtr RandomSaturation(const RandomFactor& factor,
                          const RandomColorOptions& options = {});
LayerPtr RandomHue(const UnitFactor& factor,
                   const RandomColorOptions& options = {});
LayerPtr RandomColorDegeneration(const RandomFactor& factor,
                                 const RandomColorOptions& options = {});
LayerPtr RandomInvert(const UnitFactor& factor = 1.0,
                      const RandomColorOptions& options = {});
LayerPtr RandomSharpness(const UnitFactor& factor,
                         const RandomColorOptions& options = {});

struct RandomColorJitterOptions {
  // Those of the layers of these names; unset: no such change.
  std::optional<RandomFactor> brightness_factor = std::nullopt;
  std::optional<UnitFactor> contrast_factor = std::nullopt;
  std::optional<RandomFactor> saturation_factor = std::nullopt;
  std::optional<UnitFactor> hue_factor = std::nullopt;
  ValueRange value_range = {};
  uint64_t seed = 0;  // 0: derived from the model's.
  std::string name = "";
};

// RandomBrightness, RandomContrast, RandomSaturation and RandomHue, in this
// order. The last two need 3 channels.
class RandomColorJitterLayer : public AugmentationLayer {
 public:
  explicit RandomColorJitterLayer(const RandomColorJitterOptions& options)
      : AugmentationLayer(options.name, options.seed), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;
  std::vector<int64_t> channel_counts() const override;

 private:
  RandomColorJitterOptions options_;
};

// Equivalent to: keras.layers.RandomColorJitter.
LayerPtr RandomColorJitter(const RandomColorJitterOptions& options = {});

struct EqualizationOptions {
  int64_t bins = 256;
  ValueRange value_range = {};
  std::string name = "";
};

// Equalizes the histogram of each channel while training. Values are counted in
// all images of the batch together, as in Keras; where replicas train in sync,
// in those of a replica. Nothing is drawn.
class EqualizationLayer : public AugmentationLayer {
 public:
  explicit EqualizationLayer(const EqualizationOptions& options)
      : AugmentationLayer(options.name, /*seed=*/0),
        bins_(options.bins),
        range_(options.value_range) {}

  void VisitConfig(ConfigVisitor& visitor) override;
  bool mixes_examples() const override { return true; }

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;

 private:
  int64_t bins_;
  ValueRange range_;
};

// Equivalent to: keras.layers.Equalization.
LayerPtr Equalization(const EqualizationOptions& options = {});

struct RandomGrayscaleOptions {
  uint64_t seed = 0;  // 0: derived from the model's.
  std::string name = "";
};

// Makes each image gray with probability `factor`, in [0, 1]. Images have 1 or
// 3 channels, and keep them.
class RandomGrayscaleLayer : public AugmentationLayer {
 public:
  RandomGrayscaleLayer(double factor, const RandomGrayscaleOptions& options)
      : AugmentationLayer(options.name, options.seed), factor_(factor) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;
  std::vector<int64_t> channel_counts() const override { return {1, 3}; }

 private:
  double factor_;
};

// Equivalent to: keras.layers.RandomGrayscale.
LayerPtr RandomGrayscale(double factor = 0.5,
                         const RandomGrayscaleOptions& options = {});

// A range of numbers of bits: `4` stands for 1 to 4. The upper end is drawn
// only if it is the lower one, too.
struct BitFactor {
  BitFactor(int64_t bits) : lower(1), upper(bits) {}  // NOLINT: see above.
  BitFactor(int64_t lower, int64_t upper) : lower(lower), upper(upper) {}

  int64_t lower;
  int64_t upper;
};

// Reduces pixels to u bits; the factor is in [1, 8].
class RandomPosterizationLayer : public AugmentationLayer {
 public:
  RandomPosterizationLayer(const BitFactor& factor,
                           const RandomColorOptions& options)
      : AugmentationLayer(options.name, options.seed),
        factor_(factor),
        range_(options.value_range) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;

 private:
  BitFactor factor_;
  ValueRange range_;
};

// Equivalent to: keras.layers.RandomPosterization.
LayerPtr RandomPosterization(const BitFactor& factor,
                             const RandomColorOptions& options = {});

struct SolarizationOptions {
  UnitFactor addition_factor = 0.0;
  UnitFactor threshold_factor = 0.0;
  ValueRange value_range = {};
  uint64_t seed = 0;  // 0: derived from the model's.
  std::string name = "";
};

// Adds a number to each image and inverts pixels from a threshold on, both as
// of pixels from 0 to 255 and drawn from [lower, 255 * upper) of their factors,
// which are in [0, 1].
class SolarizationLayer : public AugmentationLayer {
 public:
  explicit SolarizationLayer(const SolarizationOptions& options)
      : AugmentationLayer(options.name, options.seed), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;

 private:
  SolarizationOptions options_;
};

// Equivalent to: keras.layers.Solarization.
LayerPtr Solarization(const SolarizationOptions& options = {});

struct AutoContrastOptions {
  ValueRange value_range = {};
  std::string name = "";
};

// Stretches each channel of each image to the whole value range, while training
// and otherwise. Images are [batch, height, width, channels]; integers are
// converted to float32. Channels of a single value stay as they are. No
// weights.
class AutoContrastLayer : public Layer {
 public:
  explicit AutoContrastLayer(const AutoContrastOptions& options)
      : Layer(options.name), range_(options.value_range) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Precision precision() const override { return Precision::kFloat32; }
  Value Call(Value x, const CallContext& context) override;

 private:
  ValueRange range_;
};

// Equivalent to: keras.layers.AutoContrast.
LayerPtr AutoContrast(const AutoContrastOptions& options = {});

struct RandomGaussianBlurOptions {
  // Odd numbers: of columns and rows where sigma's two numbers differ.
  std::array<int64_t, 2> kernel_size = {3, 3};
  UnitFactor sigma = 1.0;
  ValueRange value_range = {};
  uint64_t seed = 0;  // 0: derived from the model's.
  std::string name = "";
};

// Blurs each image with probability u; the factor is in [0, 1]. Two standard
// deviations are drawn from `sigma` for the whole batch. All images are clipped
// to the value range.
class RandomGaussianBlurLayer : public AugmentationLayer {
 public:
  RandomGaussianBlurLayer(const UnitFactor& factor,
                          const RandomGaussianBlurOptions& options)
      : AugmentationLayer(options.name, options.seed),
        factor_(factor),
        options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;

 private:
  UnitFactor factor_;
  RandomGaussianBlurOptions options_;
};

// Equivalent to: keras.layers.RandomGaussianBlur.
LayerPtr RandomGaussianBlur(const UnitFactor& factor = 1.0,
                            const RandomGaussianBlurOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_RANDOM_COLOR_H_
