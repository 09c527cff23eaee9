#ifndef COMMON_LEARN_NN_LAYERS_LEAKY_RELU_H_
#define COMMON_LEARN_NN_LAYERS_LEAKY_RELU_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"

// Rectifiers with a slope below zero.
namespace muster {

struct LeakyReLUOptions {
  double negative_slope = 0.3;
  std::string name = "";
};

//   y = x                   where x >= 0
//   y = negative_slope * x  elsewhere
//
// Accepts any shape; the output has the shape of the input. No weights.
//
// Source: Maas et al., "Rectifier Nonlinearities Improve Neural Network
// Acoustic Models", 2013; keras.layers.LeakyReLU.
class LeakyReLULayer : public Layer {
 public:
  explicit LeakyReLULayer(const LeakyReLUOptions& options)
      : Layer(options.name), negative_slope_(options.negative_slope) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  bool keeps_mask() const override { return true; }
  Value Call(Value x, const CallContext& context) override;

 private:
  double negative_slope_;
};

// Equivalent to: keras.layers.LeakyReLU.
LayerPtr LeakyReLU(const LeakyReLUOptions& options = {});

struct PReLUOptions {
  Initializer alpha_initializer = Zeros();
  Regularizer alpha_regularizer = {};
  Constraint alpha_constraint = {};
  // Axes along which all positions share one slope; {1, 2} for images.
  std::vector<int64_t> shared_axes = {};
  std::string name = "";
};

//   y = x          where x >= 0
//   y = alpha * x  elsewhere
//
// Accepts any shape; the output has the shape of the input. Weights: alpha, of
// the input's shape without the batch, with extent 1 along `shared_axes`.
//
// Source: He et al., "Delving Deep into Rectifiers", 2015 (arXiv:1502.01852);
// keras.layers.PReLU.
class PReLULayer : public Layer {
 public:
  explicit PReLULayer(const PReLUOptions& options)
      : Layer(options.name), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  bool keeps_mask() const override { return true; }
  void Build(const Shape& input) override;
  Value Call(Value x, const CallContext& context) override;

 private:
  PReLUOptions options_;
  Weight alpha_;
};

// Equivalent to: keras.layers.PReLU.
LayerPtr PReLU(const PReLUOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_LEAKY_RELU_H_
