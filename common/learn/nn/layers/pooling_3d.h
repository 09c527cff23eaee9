#ifndef COMMON_LEARN_NN_LAYERS_POOLING_3D_H_
#define COMMON_LEARN_NN_LAYERS_POOLING_3D_H_

#include <optional>
#include <string>

#include "common/learn/nn/layer.h"
#include "common/learn/nn/window.h"

// Pooling of volumes [batch, depth, height, width, channels]: one value for
// each window, or for each volume. No weights. All extents but the batch must
// be known.
//
// The output of window pooling is [batch, depth', height', width', channels]
// with the extents of pooling.h. The output of global pooling is [batch,
// channels].
namespace muster {

struct Pooling3DOptions {
  std::optional<Size3D> strides = std::nullopt;  // Unset: the pool size.
  Padding padding = Padding::kValid;
  std::string name = "";
};

// The maximum or the mean of each window. Padding is not counted. Computed
// along height and width first, then along depth: the maximum and the mean of a
// window are those of its slices.
//
// Source: keras.layers.MaxPooling3D, keras.layers.AveragePooling3D.
class Pooling3DLayer : public Layer {
 public:
  Pooling3DLayer(bool takes_mean, Size3D pool_size,
                 const Pooling3DOptions& options)
      : Layer(options.name),
        takes_mean_(takes_mean),
        pool_size_(pool_size),
        options_(options) {}

  std::string kind() const override {
    return takes_mean_ ? "AveragePooling3D" : "MaxPooling3D";
  }
  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  const bool takes_mean_;
  Size3D pool_size_;
  Pooling3DOptions options_;
};

struct GlobalPooling3DOptions {
  // If true, the output is [batch, 1, 1, 1, channels].
  bool keepdims = false;
  std::string name = "";
};

// The maximum or the mean of each channel.
//
// Source: keras.layers.GlobalMaxPooling3D, keras.layers.GlobalAveragePooling3D.
class GlobalPooling3DLayer : public Layer {
 public:
  GlobalPooling3DLayer(bool takes_mean, const GlobalPooling3DOptions& options)
      : Layer(options.name),
        takes_mean_(takes_mean),
        keepdims_(options.keepdims) {}

  std::string kind() const override {
    return takes_mean_ ? "GlobalAveragePooling3D" : "GlobalMaxPooling3D";
  }
  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  const bool takes_mean_;
  bool keepdims_;
};

// Equivalent to: the functions of the same names in keras.layers.
LayerPtr MaxPooling3D(Size3D pool_size = 2,
                      const Pooling3DOptions& options = {});
LayerPtr AveragePooling3D(Size3D pool_size = 2,
                          const Pooling3DOptions& options = {});
LayerPtr GlobalMaxPooling3D(const GlobalPooling3DOptions& options = {});
LayerPtr GlobalAveragePooling3D(const GlobalPooling3DOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_POOLING_3D_H_
