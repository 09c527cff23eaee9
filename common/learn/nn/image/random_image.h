#ifndef COMMON_LEARN_NN_IMAGE_RANDOM_IMAGE_H_
#define COMMON_LEARN_NN_IMAGE_RANDOM_IMAGE_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "common/compute/ops/image_ops.h"
#include "common/learn/nn/layer.h"

// Random augmentation of images [batch, height, width, channels]. Active while
// training only; otherwise the layers return their input. Integers are
// converted to float32. The random numbers of an image depend on the step and
// on its index in the global batch, not on the number of replicas. The output
// has the shape of the input. No weights.
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
class RandomFlipLayer : public Layer {
 public:
  RandomFlipLayer(FlipMode mode, const RandomFlipOptions& options)
      : Layer(options.name), mode_(mode), seed_(options.seed) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Precision precision() const override { return Precision::kFloat32; }
  Value Call(Value x, const CallContext& context) override;

 private:
  FlipMode mode_;
  uint64_t seed_;
};

// Equivalent to: keras.layers.RandomFlip.
LayerPtr RandomFlip(FlipMode mode = FlipMode::kHorizontalAndVertical,
                    const RandomFlipOptions& options = {});

// A range of factors to draw from. One number stands for [-number, number].
struct RandomFactor {
  RandomFactor(double factor)  // NOLINT: as Keras' arguments.
      : lower(-std::fabs(factor)), upper(std::fabs(factor)) {}
  RandomFactor(double lower, double upper) : lower(lower), upper(upper) {}

  double lower;
  double upper;
};

struct RandomRotationOptions {
  FillMode fill_mode = FillMode::kReflect;
  Interpolation interpolation = Interpolation::kBilinear;
  double fill_value = 0;
  uint64_t seed = 0;  // 0: derived from the model's.
  std::string name = "";
};

// Rotates each image about its center by a random `factor` of a full circle.
// Positive factors rotate counterclockwise.
class RandomRotationLayer : public Layer {
 public:
  RandomRotationLayer(const RandomFactor& factor,
                      const RandomRotationOptions& options)
      : Layer(options.name), factor_(factor), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Precision precision() const override { return Precision::kFloat32; }
  Value Call(Value x, const CallContext& context) override;

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
class RandomZoomLayer : public Layer {
 public:
  RandomZoomLayer(const RandomFactor& height_factor,
                  const RandomZoomOptions& options)
      : Layer(options.name), height_factor_(height_factor), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Precision precision() const override { return Precision::kFloat32; }
  Value Call(Value x, const CallContext& context) override;

 private:
  RandomFactor height_factor_;
  RandomZoomOptions options_;
};

// Equivalent to: keras.layers.RandomZoom.
LayerPtr RandomZoom(const RandomFactor& height_factor,
                    const RandomZoomOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_RANDOM_IMAGE_H_
