#ifndef COMMON_LEARN_NN_LAYERS_NOISE_H_
#define COMMON_LEARN_NN_LAYERS_NOISE_H_

#include <cstdint>
#include <string>

#include "common/learn/nn/layer.h"

// Layers that draw random numbers while training, and otherwise return their
// input. The output has the shape of the input. No weights. The numbers follow
// from the seed, the layer's path and the step, so a retried step draws the
// same ones; they are not Keras'.
//
// Reported to the builder: kInvalidArgument for a number that is out of range.
namespace muster {

struct NoiseOptions {
  uint64_t seed = 0;  // 0: derived from the model's seed.
  std::string name = "";
};

// The base of the layers of this file.
class NoiseLayer : public Layer {
 public:
  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  // `parameter` is Keras' name of the number that says how much noise there is.
  NoiseLayer(const char* parameter, double amount, const NoiseOptions& options)
      : Layer(options.name),
        parameter_(parameter),
        amount_(amount),
        seed_(options.seed) {}

  bool keeps_mask() const override { return true; }
  Value Call(Value x, const CallContext& context) final;

  // Adds the noise, of an amount that is not 0.
  virtual Value AddNoise(Value x, double amount, Value seed) = 0;
  // True if an amount of 1 is valid.
  virtual bool accepts_one() const { return false; }

 private:
  bool is_valid() const;
  // "in [0, 1)"
  const char* range() const {
    return accepts_one() ? "in [0, 1]" : "in [0, 1)";
  }

  const char* parameter_;
  double amount_;
  uint64_t seed_;
};

// Adds normal numbers of the standard deviation `stddev`, in [0, 1].
//
// Equivalent to: keras.layers.GaussianNoise.
LayerPtr GaussianNoise(double stddev, const NoiseOptions& options = {});

// Multiplies by normal numbers of mean 1 and standard deviation
// sqrt(rate / (1 - rate)), with `rate` in [0, 1).
//
// Source: Srivastava et al., "Dropout", 2014, section 10;
// keras.layers.GaussianDropout.
LayerPtr GaussianDropout(double rate, const NoiseOptions& options = {});

// Sets elements to the limit of selu below 0 with probability `rate`, in
// [0, 1), and scales all so that mean 0 and variance 1 are kept.
//
// Source: Klambauer et al., arXiv:1706.02515; keras.layers.AlphaDropout.
LayerPtr AlphaDropout(double rate, const NoiseOptions& options = {});

// Dropout of whole channels: for an example, a channel is 0 everywhere with
// probability `rate`, in [0, 1), and is multiplied by 1 / (1 - rate) otherwise.
// Input [batch, time, channels], [batch, height, width, channels], or [batch,
// depth, height, width, channels].
//
// Source: Tompson et al., arXiv:1411.4280; keras.layers.SpatialDropout1D to 3D.
LayerPtr SpatialDropout1D(double rate, const NoiseOptions& options = {});
LayerPtr SpatialDropout2D(double rate, const NoiseOptions& options = {});
LayerPtr SpatialDropout3D(double rate, const NoiseOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_NOISE_H_
