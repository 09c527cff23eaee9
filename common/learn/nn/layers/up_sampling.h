#ifndef COMMON_LEARN_NN_LAYERS_UP_SAMPLING_H_
#define COMMON_LEARN_NN_LAYERS_UP_SAMPLING_H_

#include <cstdint>
#include <string>

#include "common/learn/nn/layer.h"
#include "common/learn/nn/window.h"

// Layers that repeat elements or interpolate between them. All extents except
// the batch must be known. No weights.
namespace muster {

struct UpSamplingOptions {
  std::string name = "";
};

enum class UpSamplingInterpolation {
  kBilinear,
  kNearest,
  kBicubic,
  kLanczos3,
  kLanczos5,
};

struct UpSampling2DOptions {
  UpSamplingInterpolation interpolation = UpSamplingInterpolation::kNearest;
  std::string name = "";
};

// Input [batch, features], output [batch, n, features].
//
// Source: keras.layers.RepeatVector.
class RepeatVectorLayer : public Layer {
 public:
  RepeatVectorLayer(int64_t n, const UpSamplingOptions& options)
      : Layer(options.name), n_(n) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t n_;
};

// Repeats each step `size` times: input [batch, time, channels], output
// [batch, size * time, channels].
//
// Source: keras.layers.UpSampling1D.
class UpSampling1DLayer : public Layer {
 public:
  UpSampling1DLayer(int64_t size, const UpSamplingOptions& options)
      : Layer(options.name), size_(size) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t size_;
};

// Enlarges images. Input [batch, height, width, channels], output [batch,
// size.height * height, size.width * width, channels]. kNearest repeats rows
// and columns. The others interpolate between the centres of pixels, and
// integers become float32: kBilinear as ResizeImage(), and
//   y = sum of k(p - i) * x_i / sum of k(p - i),  p = (j + 0.5) / size - 0.5
// for row j (then column j) and the rows i of the image, with
//   kBicubic   Keys' kernel with a = -0.5
//   kLanczosN  k(t) = sinc(t) * sinc(t / N) for |t| < N, otherwise 0
//
// Source: keras.layers.UpSampling2D; Keys, "Cubic convolution interpolation for
// digital image processing", IEEE Trans. ASSP 29 (1981); Duchon, "Lanczos
// filtering in one and two dimensions", J. Appl. Meteor. 18 (1979).
class UpSampling2DLayer : public Layer {
 public:
  UpSampling2DLayer(Size2D size, const UpSampling2DOptions& options)
      : Layer(options.name),
        size_(size),
        interpolation_(options.interpolation) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  Size2D size_;
  UpSamplingInterpolation interpolation_;
};

// Repeats slices, rows and columns of volumes. Input [batch, depth, height,
// width, channels], output [batch, size.depth * depth, size.height * height,
// size.width * width, channels].
//
// Source: keras.layers.UpSampling3D.
class UpSampling3DLayer : public Layer {
 public:
  UpSampling3DLayer(Size3D size, const UpSamplingOptions& options)
      : Layer(options.name), size_(size) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  Size3D size_;
};

// Equivalent to: the functions of the same names in keras.layers.
LayerPtr RepeatVector(int64_t n, const UpSamplingOptions& options = {});
LayerPtr UpSampling1D(int64_t size = 2, const UpSamplingOptions& options = {});
LayerPtr UpSampling2D(Size2D size = 2, const UpSampling2DOptions& options = {});
LayerPtr UpSampling3D(Size3D size = 2, const UpSamplingOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_UP_SAMPLING_H_
