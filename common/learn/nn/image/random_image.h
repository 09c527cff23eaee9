#ifndef COMMON_LEARN_NN_IMAGE_RANDOM_IMAGE_H_
#define COMMON_LEARN_NN_IMAGE_RANDOM_IMAGE_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "common/compute/ops/image_ops.h"
#include "common/learn/nn/layer.h"

// Images [batch, height, width, channels] changed at random while training, and
// left as they are otherwise. Integers become float32. What an image draws
// depends on the step and its place in the global batch, not on how many
// replicas share the batch. The output has the input's shape; no weights.
//
// Source: RandomFlip, RandomRotation and RandomZoom of keras.layers.
namespace muster {

enum class FlipMode { kHorizontal, kVertical, kHorizontalAndVertical };

struct RandomFlipOptions {
  uint64_t seed = 0;  // 0: from the model's.
  std::string name = "";
};

// Turns every other image left to right, upside down or, in one draw, both.
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

// Between which two numbers to draw; one number stands for [-number, number].
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
  uint64_t seed = 0;  // 0: from the model's.
  std::string name = "";
};

// Turns each image round its middle by `factor` of a full circle; positive is
// counterclockwise.
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
  // Unset: the same as of the height, in one draw.
  std::optional<RandomFactor> width_factor = std::nullopt;
  FillMode fill_mode = FillMode::kReflect;
  Interpolation interpolation = Interpolation::kBilinear;
  double fill_value = 0;
  uint64_t seed = 0;  // 0: from the model's.
  std::string name = "";
};

// Shows 1 + `height_factor` of each image's height, and of its width likewise:
// negative factors zoom in, positive ones out. Factors lie in (-1, 1].
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
