#ifndef COMMON_LEARN_NN_LAYERS_DENSE_H_
#define COMMON_LEARN_NN_LAYERS_DENSE_H_

#include <cstdint>
#include <string>

#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"

namespace muster {

struct DenseOptions {
  Activation activation = Activation::kLinear;
  bool use_bias = true;
  Initializer kernel_initializer = GlorotUniform();
  Initializer bias_initializer = Zeros();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = "";
};

// y = activation(x kernel + bias), over the last axis. Integers become float32.
//
// Input [batch, ..., features], output [batch, ..., units].
// Weights: kernel [features, units], bias [units] if `use_bias`.
//
// Source: keras.layers.Dense.
class DenseLayer : public Layer {
 public:
  DenseLayer(int64_t units, const DenseOptions& options);

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  bool keeps_mask() const override { return true; }
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  int64_t units_;
  DenseOptions options_;
  Weight kernel_;
  Weight bias_;
};

// Equivalent to: keras.layers.Dense.
LayerPtr Dense(int64_t units, const DenseOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_DENSE_H_
