#ifndef COMMON_LEARN_NN_LAYERS_LAYER_NORMALIZATION_H_
#define COMMON_LEARN_NN_LAYERS_LAYER_NORMALIZATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"

namespace muster {

struct LayerNormalizationOptions {
  // The axes over which each example is normalized. Negative numbers count from
  // the last axis. Must not include the batch axis.
  std::vector<int64_t> axis = {-1};
  double epsilon = 1e-3;  // Added to the variance.
  bool center = true;     // Adds beta.
  bool scale = true;      // Multiplies by gamma.
  Initializer beta_initializer = Zeros();
  Initializer gamma_initializer = Ones();
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  std::string name = "";
};

//   y = (x - mean) / sqrt(variance + epsilon) * gamma + beta
//
// The mean and variance of each example are over `axis`. All is computed in
// float32; the output has the dtype of the policy, and the shape of
// the input. One op computes it where `axis` has the last axes, and several do
// where it has others, which takes more time and memory. The extents along
// `axis` must be known. Weights, with the extents of `axis`: gamma if `scale`,
// beta if `center`.
//
// Source: Ba et al., "Layer Normalization", 2016 (arXiv:1607.06450);
// keras.layers.LayerNormalization.
class LayerNormalizationLayer : public Layer {
 public:
  explicit LayerNormalizationLayer(const LayerNormalizationOptions& options)
      : Layer(options.name), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  bool keeps_mask() const override { return true; }
  // Elements of 16 bits are not cast before the op.
  Precision precision() const override { return Precision::kAsTheyCome; }
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  // `features` is the shape of the last axes of x.
  Value NormalizeRows(Value x, const Shape& features);
  Value NormalizeAlong(Value x, const std::vector<int64_t>& axes);

  LayerNormalizationOptions options_;
  Weight gamma_;
  Weight beta_;
};

// Equivalent to: keras.layers.LayerNormalization.
LayerPtr LayerNormalization(const LayerNormalizationOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_LAYER_NORMALIZATION_H_
