#ifndef COMMON_LEARN_NN_LAYERS_RMS_NORMALIZATION_H_
#define COMMON_LEARN_NN_LAYERS_RMS_NORMALIZATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/learn/nn/layer.h"

// Normalizations by the size of vectors, without a mean.
namespace muster {

struct RMSNormalizationOptions {
  int64_t axis = -1;  // The last axis.
  double epsilon = 1e-6;
  std::string name = "";
};

// y = x / sqrt(mean(x^2) + epsilon) * scale, with the mean over the last axis.
// It is computed in float32 or wider. The output has the shape of the input.
// Weights: scale [last extent], initialized with 1; float32.
//
// Source: Zhang and Sennrich, arXiv:1910.07467; keras.layers.RMSNormalization.
// Other axes are refused; Keras takes them where `scale` happens to broadcast.
class RMSNormalizationLayer : public Layer {
 public:
  explicit RMSNormalizationLayer(const RMSNormalizationOptions& options)
      : Layer(options.name), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Precision precision() const override { return Precision::kFloat32; }
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  RMSNormalizationOptions options_;
  Weight scale_;
};

// Equivalent to: keras.layers.RMSNormalization.
LayerPtr RMSNormalization(const RMSNormalizationOptions& options = {});

struct UnitNormalizationOptions {
  std::vector<int64_t> axis = {-1};
  std::string name = "";
};

// y = x / |x|_2, with the norm over the axes `axis`. Vectors shorter than 1e-12
// are divided by 1e-12. The output has the shape of the input. No weights.
//
// Source: keras.layers.UnitNormalization.
class UnitNormalizationLayer : public Layer {
 public:
  explicit UnitNormalizationLayer(const UnitNormalizationOptions& options)
      : Layer(options.name), axis_(options.axis) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  bool keeps_mask() const override { return true; }
  Precision precision() const override { return Precision::kFloat32; }
  Value Call(Value x, const CallContext& context) override;

 private:
  std::vector<int64_t> axis_;
};

// Equivalent to: keras.layers.UnitNormalization.
LayerPtr UnitNormalization(const UnitNormalizationOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_RMS_NORMALIZATION_H_
