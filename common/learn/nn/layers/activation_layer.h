#ifndef COMMON_LEARN_NN_LAYERS_ACTIVATION_LAYER_H_
#define COMMON_LEARN_NN_LAYERS_ACTIVATION_LAYER_H_

#include <memory>
#include <string>

#include "common/learn/nn/activations.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {

struct ActivationOptions {
  std::string name = "";
};

// y = activation(x), element by element but for softmax and log_softmax, which
// go over the last axis. Any shape; the output has the input's. No weights.
//
// Source: keras.layers.Activation.
class ActivationLayer : public Layer {
 public:
  ActivationLayer(Activation activation, const ActivationOptions& options = {})
      : Layer(options.name), activation_(activation) {}

  void VisitConfig(ConfigVisitor& visitor) override {
    visitor.Visit({"function", "activation"}, activation_);
  }

 protected:
  bool keeps_mask() const override { return true; }
  Value Call(Value x, const CallContext&) override {
    return Activate(activation_, x);
  }

 private:
  Activation activation_;
};

// Equivalent to: keras.layers.Activation.
inline LayerPtr Activate(Activation activation,
                         const ActivationOptions& options = {}) {
  return std::make_shared<ActivationLayer>(activation, options);
}

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_ACTIVATION_LAYER_H_
