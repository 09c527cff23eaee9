#ifndef COMMON_LEARN_NN_LAYERS_POOLING_1D_H_
#define COMMON_LEARN_NN_LAYERS_POOLING_1D_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/learn/nn/layer.h"
#include "common/learn/nn/window.h"

// Pooling of sequences [batch, time, channels]: one value for each window, or
// for each sequence. No weights.
//
// The output of window pooling is [batch, time', channels] with the extents of
// pooling.h. The output of global pooling is [batch, channels].
namespace muster {

struct Pooling1DOptions {
  std::optional<int64_t> strides = std::nullopt;  // Unset: the pool size.
  Padding padding = Padding::kValid;
  std::string name = "";
};

// The maximum or the mean of each window. Padding is not counted.
//
// Source: keras.layers.MaxPooling1D, keras.layers.AveragePooling1D.
class Pooling1DLayer : public Layer {
 public:
  Pooling1DLayer(bool takes_mean, int64_t pool_size,
                 const Pooling1DOptions& options)
      : Layer(options.name),
        takes_mean_(takes_mean),
        pool_size_(pool_size),
        options_(options) {}

  std::string kind() const override {
    return takes_mean_ ? "AveragePooling1D" : "MaxPooling1D";
  }
  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  const bool takes_mean_;
  int64_t pool_size_;
  Pooling1DOptions options_;
};

struct GlobalPooling1DOptions {
  // If true, the output is [batch, 1, channels].
  bool keepdims = false;
  std::string name = "";
};

// The maximum or the mean of each channel. The mean is over positions that are
// not masked (masks.h), as in Keras; the maximum ignores masks, as in Keras. A
// sequence that is all masked has a mean of NaN.
//
// Source: keras.layers.GlobalMaxPooling1D, keras.layers.GlobalAveragePooling1D.
class GlobalPooling1DLayer : public Layer {
 public:
  GlobalPooling1DLayer(bool takes_mean, const GlobalPooling1DOptions& options)
      : Layer(options.name),
        takes_mean_(takes_mean),
        keepdims_(options.keepdims) {}

  std::string kind() const override {
    return takes_mean_ ? "GlobalAveragePooling1D" : "GlobalMaxPooling1D";
  }
  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Value Call(Value x, const CallContext& context) override;

 private:
  const bool takes_mean_;
  bool keepdims_;
};

// Equivalent to: the functions of the same names in keras.layers.
LayerPtr MaxPooling1D(int64_t pool_size = 2,
                      const Pooling1DOptions& options = {});
LayerPtr AveragePooling1D(int64_t pool_size = 2,
                          const Pooling1DOptions& options = {});
LayerPtr GlobalMaxPooling1D(const GlobalPooling1DOptions& options = {});
LayerPtr GlobalAveragePooling1D(const GlobalPooling1DOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_POOLING_1D_H_
