#ifndef COMMON_LEARN_NN_IMAGE_MIXED_IMAGES_H_
#define COMMON_LEARN_NN_IMAGE_MIXED_IMAGES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/image/color.h"
#include "common/learn/nn/layer.h"

// MixUp and CutMix: each image is mixed with another one of its batch, and so
// are their labels.
//
// Labels are mixed by functions of batches, for Dataset::Map():
//
//   train = train.Batch(128).Map(OneHotLabels(10));
//   train = train.Map(MixUpBatches(), {.seed = 7});
//
// The layers see no labels and mix the images alone, as those of Keras that are
// called with images only. They exist for models of Keras that have them.
//
// Under a synchronous strategy, a layer mixes the images of a replica. A
// function mixes those of the batch that its dataset has.
//
// Source: Zhang et al., "mixup: Beyond Empirical Risk Minimization", 2017
// (arXiv:1710.09412); Yun et al., "CutMix", 2019 (arXiv:1905.04899);
// keras.layers.MixUp and keras.layers.CutMix.
namespace muster {

// What Dataset::Map() takes: the components of a batch, then those of the
// result.
using BatchFunction =
    std::function<std::vector<Value>(absl::Span<const Value>)>;

// Makes class numbers one-hot: the labels, which are component 1, [batch] or
// [batch, 1] of an integer dtype, become float32[batch, class_count]. Other
// components stay as they are. A number outside of [0, class_count) fails the
// iterator.
//   kInvalidArgument  there are no such labels, or class_count is below 1
BatchFunction OneHotLabels(int64_t class_count);

struct MixUpOptions {
  double alpha = 0.2;  // Above 0. The smaller, the less is mixed.
  uint64_t seed = 0;   // 0: derived from the model's.
  std::string name = "";
};

// y = w x + (1 - w) x', where x' is an image of the batch at random and w is
// drawn from Beta(alpha, alpha) for each image.
class MixUpLayer : public AugmentationLayer {
 public:
  explicit MixUpLayer(const MixUpOptions& options)
      : AugmentationLayer(options.name, options.seed), alpha_(options.alpha) {}

  void VisitConfig(ConfigVisitor& visitor) override;
  bool mixes_examples() const override { return true; }

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;

 private:
  double alpha_;
};

// Equivalent to: keras.layers.MixUp of images.
LayerPtr MixUp(const MixUpOptions& options = {});

// Component 0 is images [batch, height, width, channels] of known height and
// width, component 1 their labels, [batch, classes] of a floating dtype. Other
// components stay as they are. Images that are not float64 become float32. The
// numbers depend on the seed of the stage, too.
//   kInvalidArgument  components or options are others
//
// Equivalent to: keras.layers.MixUp of images and labels.
BatchFunction MixUpBatches(const MixUpOptions& options = {});

struct CutMixOptions {
  UnitFactor factor = 1.0;  // In [0, 1].
  uint64_t seed = 0;        // 0: derived from the model's.
  std::string name = "";
};

// Replaces a box of each image with that of an image of the batch at random.
// The box covers the share 1 - w of the image, where w is drawn from Beta(u,
// u) for each image, and u from the factor for the batch. Labels are mixed by
// the share that remains.
class CutMixLayer : public AugmentationLayer {
 public:
  explicit CutMixLayer(const CutMixOptions& options)
      : AugmentationLayer(options.name, options.seed),
        factor_(options.factor) {}

  void VisitConfig(ConfigVisitor& visitor) override;
  bool mixes_examples() const override { return true; }

 protected:
  Value Augment(Value x, ImageDraws& draws) override;
  std::string Mistake() const override;

 private:
  UnitFactor factor_;
};

// Equivalent to: keras.layers.CutMix of images.
LayerPtr CutMix(const CutMixOptions& options = {});

// As MixUpBatches().
//
// Equivalent to: keras.layers.CutMix of images and labels.
BatchFunction CutMixBatches(const CutMixOptions& options = {});

namespace internal {

// What is computed from what was drawn. `order` is int32 [batch]: the image
// with which each one is mixed.

// weight * x + (1 - weight) * x[order]. `weight` broadcasts to x, [batch, ...].
Value Blend(Value x, Value weight, Value order);
// Replaces the box of each image with that of images[order].
Value PasteBox(Value images, const Box& box, Value order);
// The share of images [batch, height, width, ...] outside of the box: [batch,
// 1, 1, 1].
Value ShareOutside(Value images, const Box& box);
// A random order of the images: int32 [batch]. Takes memory for
// batch^2 numbers.
Value DrawOrder(ImageDraws& draws);

}  // namespace internal

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_MIXED_IMAGES_H_
