#ifndef COMMON_LEARN_NN_IMAGE_AUGMENTATION_H_
#define COMMON_LEARN_NN_IMAGE_AUGMENTATION_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/base/random.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

// Helpers of the layers of random image augmentation.
namespace muster {

// A range of factors to draw from. One number stands for [-number, number].
struct RandomFactor {
  RandomFactor(double factor)  // NOLINT: as Keras' arguments.
      : lower(-std::fabs(factor)), upper(std::fabs(factor)) {}
  RandomFactor(double lower, double upper) : lower(lower), upper(upper) {}

  double lower;
  double upper;
};

// As RandomFactor, of layers whose factors are in [0, 1]. One number stands for
// [0, number].
struct UnitFactor {
  UnitFactor(double factor)  // NOLINT: as Keras' arguments.
      : lower(0), upper(std::fabs(factor)) {}
  UnitFactor(double lower, double upper) : lower(lower), upper(upper) {}

  double lower;
  double upper;
};

// The least and the greatest value of a pixel.
struct ValueRange {
  double lower = 0;
  double upper = 255;
};

// The random numbers of one call of a layer. Those of an image depend on the
// step and on its index in the global batch, not on the number of replicas.
class ImageDraws {
 public:
  // `images` is [batch, height, width, channels].
  ImageDraws(Value images, uint64_t layer_seed)
      : images_(images), layer_seed_(layer_seed) {}

  // Returns one number for each image, uniform in [lower, upper): [batch, 1, 1,
  // 1] of the dtype of the images, as all draws.
  Value Uniform(double lower, double upper);
  // Returns -1 or 1 for each image: [batch, 1, 1, 1].
  Value Sign();
  // Returns a standard normal number for each image: [batch, 1, 1, 1].
  Value Normal();
  // Returns `count` numbers for all images, uniform in [lower, upper): [count].
  Value UniformOfBatch(int64_t count, double lower, double upper);
  // Returns `count` standard normal numbers for all images: [count].
  Value NormalOfBatch(int64_t count);
  // Returns standard normal numbers of the shape of the images.
  Value NormalPixels();

  // Returns the draws of a part of the layer, independent for each `part`.
  ImageDraws OfPart(uint64_t part) const {
    return ImageDraws(images_, FoldIn(layer_seed_, part));
  }

 private:
  Value NextSeed();
  // A number for each image, of which the shape counts: [batch, 1].
  Value Column() const;

  const Value images_;
  const uint64_t layer_seed_;
  uint64_t draw_count_ = 0;
};

// A layer that changes images [batch, height, width, channels] of known height
// and width while training only; otherwise it returns its input. Integers are
// converted to float32. No weights.
class AugmentationLayer : public Layer {
 public:
  AugmentationLayer(const std::string& name, uint64_t seed)
      : Layer(name), seed_(seed) {}

  // Augment(), for layers that consist of others.
  Value AugmentWith(Value x, ImageDraws& draws) { return Augment(x, draws); }

 protected:
  Precision precision() const override { return Precision::kFloat32; }
  Value Call(Value x, const CallContext& context) override;

  // Returns the changed images. `x` has a floating dtype.
  virtual Value Augment(Value x, ImageDraws& draws) = 0;
  // Returns the mistake in the options; empty if there is none. Follows the
  // name of the layer in messages.
  virtual std::string Mistake() const { return ""; }
  // How many channels the images may have; empty: any number.
  virtual std::vector<int64_t> channel_counts() const { return {}; }

  // Visits the seed, and refuses what Mistake() says.
  void VisitSeed(ConfigVisitor& visitor, ConfigName name = "seed");

 private:
  uint64_t seed_;  // 0: derived from the model's.
};

// Visits a list of one or two numbers. A reader refuses that a required one is
// absent.
template <typename Factor>
void VisitFactor(ConfigVisitor& visitor, ConfigName name, Factor& factor,
                 bool is_required = true) {
  std::vector<double> numbers;
  if (visitor.IsPresent(name, true)) {
    numbers = {factor.lower, factor.upper};
    visitor.Visit(name, numbers);
  } else if (!is_required) {
    return;
  }
  if (numbers.size() == 1) {
    factor = Factor(numbers[0]);
  } else if (numbers.size() == 2) {
    factor = Factor(std::fmin(numbers[0], numbers[1]),
                    std::fmax(numbers[0], numbers[1]));
  } else {
    visitor.Refuse(
        name, absl::StrCat("must be one number or two, got ", numbers.size()));
  }
}

// Visits a list of the least and the greatest value.
void VisitValueRange(ConfigVisitor& visitor, ValueRange& range);

// "must be in [-1, 1], got [2, 3]" if no number of the factor is in bounds;
// otherwise empty.
template <typename Factor>
std::string OutOfBounds(const Factor& factor, double lower, double upper) {
  if (factor.lower <= upper && factor.upper >= lower &&
      factor.lower <= factor.upper) {
    return "";
  }
  return absl::StrCat("must be in [", lower, ", ", upper, "], got [",
                      factor.lower, ", ", factor.upper, "]");
}

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_AUGMENTATION_H_
