#ifndef COMMON_LEARN_NN_UP_SAMPLING_H_
#define COMMON_LEARN_NN_UP_SAMPLING_H_

#include <cstdint>
#include <string>

#include "common/compute/ops/image_ops.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/window.h"

// Layers that repeat elements or interpolate between them. All extents except
// the batch must be known. No weights.
namespace muster {

struct UpSamplingOptions {
  std::string name = "";
};

struct UpSampling2DOptions {
  Interpolation interpolation = Interpolation::kNearest;
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
// and columns. kBilinear interpolates between the centres of pixels
// (ResizeImage()); integers become float32.
//
// Source: keras.layers.UpSampling2D.
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
  Interpolation interpolation_;
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

#endif  // COMMON_LEARN_NN_UP_SAMPLING_H_
