#ifndef COMMON_LEARN_NN_LAYERS_POOLING_H_
#define COMMON_LEARN_NN_LAYERS_POOLING_H_

#include <optional>
#include <string>

#include "common/learn/nn/layer.h"
#include "common/learn/nn/window.h"

// Pooling of images: one value for each window, or for each image. No weights.
//
// Input [batch, height, width, channels]. The output of window pooling is
// [batch, height', width', channels], where for each spatial axis
//   kSame   extent' = ceil(extent / stride)
//   kValid  extent' = ceil((extent - pool + 1) / stride)
// The output of global pooling is [batch, channels].
//
// Source: keras.layers.MaxPooling2D, AveragePooling2D, GlobalMaxPooling2D and
// GlobalAveragePooling2D.
namespace muster {

struct Pooling2DOptions {
  std::optional<Size2D> strides = std::nullopt;  // Unset: the pool size.
  Padding padding = Padding::kValid;
  std::string name = "";
};

// Returns the maximum of each window.
class MaxPooling2DLayer : public Layer {
 public:
  MaxPooling2DLayer(Size2D pool_size, const Pooling2DOptions& options)
      : Layer(options.name), pool_size_(pool_size), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  Size2D pool_size_;
  Pooling2DOptions options_;
};

// Returns the mean of each window. Padding is not counted.
class AveragePooling2DLayer : public Layer {
 public:
  AveragePooling2DLayer(Size2D pool_size, const Pooling2DOptions& options)
      : Layer(options.name), pool_size_(pool_size), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  Size2D pool_size_;
  Pooling2DOptions options_;
};

struct GlobalPooling2DOptions {
  // If true, the output is [batch, 1, 1, channels].
  bool keepdims = false;
  std::string name = "";
};

// Returns the maximum of each channel.
class GlobalMaxPooling2DLayer : public Layer {
 public:
  explicit GlobalMaxPooling2DLayer(const GlobalPooling2DOptions& options)
      : Layer(options.name), keepdims_(options.keepdims) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  bool keepdims_;
};

// Returns the mean of each channel.
class GlobalAveragePooling2DLayer : public Layer {
 public:
  explicit GlobalAveragePooling2DLayer(const GlobalPooling2DOptions& options)
      : Layer(options.name), keepdims_(options.keepdims) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  bool keepdims_;
};

// Equivalent to: the functions of the same names in keras.layers.
LayerPtr MaxPooling2D(Size2D pool_size = 2,
                      const Pooling2DOptions& options = {});
LayerPtr AveragePooling2D(Size2D pool_size = 2,
                          const Pooling2DOptions& options = {});
LayerPtr GlobalMaxPooling2D(const GlobalPooling2DOptions& options = {});
LayerPtr GlobalAveragePooling2D(const GlobalPooling2DOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_POOLING_H_
