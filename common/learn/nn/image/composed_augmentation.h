#ifndef COMMON_LEARN_NN_IMAGE_COMPOSED_AUGMENTATION_H_
#define COMMON_LEARN_NN_IMAGE_COMPOSED_AUGMENTATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/compute/ops/image_ops.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/layer.h"

// Layers that apply some of a list of augmentations, which they draw. What they
// have in common: augmentation.h. The output has the shape of the input.
//
// The list: RandomShear, RandomTranslation, RandomRotation,
// RandomPosterization, Solarization, AutoContrast, Equalization,
// RandomBrightness, RandomColorDegeneration, RandomContrast and
// RandomSharpness, all with the layer's factor, value range and interpolation,
// otherwise with Keras' defaults. RandomPosterization takes max(1, int(8 *
// factor.upper)) bits.
//
// All images of a batch are augmented by the same augmentations, each with
// numbers of its own. As Equalization counts values in the whole batch, images
// may depend on others.
namespace muster {

struct RandAugmentOptions {
  ValueRange value_range = {};
  int64_t num_ops = 2;
  UnitFactor factor = 0.5;  // The strength, in [0, 1].
  Interpolation interpolation = Interpolation::kBilinear;
  uint64_t seed = 0;  // 0: derived from the model's.
  std::string name = "";
};

// Applies `num_ops` augmentations of the list, one after the other. One that is
// drawn twice has the same numbers, as in Keras. Only what is drawn is
// computed. Images have 1 or 3 channels.
//
// Source: Cubuk et al., "RandAugment", 2019 (arXiv:1909.13719);
// keras.layers.RandAugment.
class RandAugmentLayer : public AugmentationLayer {
 public:
  explicit RandAugmentLayer(const RandAugmentOptions& options)
      : AugmentationLayer(options.name, options.seed), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;
  bool mixes_examples() const override { return true; }

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;
  std::vector<int64_t> channel_counts() const override { return {1, 3}; }

 private:
  RandAugmentOptions options_;
};

// Equivalent to: keras.layers.RandAugment.
LayerPtr RandAugment(const RandAugmentOptions& options = {});

struct AugMixOptions {
  ValueRange value_range = {};
  int64_t num_chains = 3;
  int64_t chain_depth = 3;
  UnitFactor factor = 0.3;  // The strength, in [0, 1].
  double alpha = 1;         // Above 0.
  // False: only the first seven of the list.
  bool all_ops = true;
  Interpolation interpolation = Interpolation::kBilinear;
  uint64_t seed = 0;  // 0: derived from the model's.
  std::string name = "";
};

// y = clip(m x + (1 - m) sum_i w_i chain_i(x)). Each chain applies up to
// chain_depth augmentations one after the other: each is drawn from the list
// and "none". m is drawn from Beta(alpha, alpha) and w from the Dirichlet
// distribution with parameters alpha, both for the batch. The augmentations are
// drawn for each step; in Keras, a compiled step draws them when it is traced.
//
// Images have 1 or 3 channels with all_ops, and any number without.
//
// Source: Hendrycks et al., "AugMix", 2019 (arXiv:1912.02781);
// keras.layers.AugMix.
class AugMixLayer : public AugmentationLayer {
 public:
  explicit AugMixLayer(const AugMixOptions& options)
      : AugmentationLayer(options.name, options.seed), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;
  bool mixes_examples() const override { return true; }

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;
  std::vector<int64_t> channel_counts() const override;

 private:
  AugMixOptions options_;
};

// Equivalent to: keras.layers.AugMix.
LayerPtr AugMix(const AugMixOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_COMPOSED_AUGMENTATION_H_
