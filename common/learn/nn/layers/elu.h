#ifndef COMMON_LEARN_NN_LAYERS_ELU_H_
#define COMMON_LEARN_NN_LAYERS_ELU_H_

#include <memory>
#include <string>

#include "common/compute/ops/ops.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {

struct ELUOptions {
  double alpha = 1;
  std::string name = "";
};

// y = x where x > 0, else alpha * (exp(x) - 1). Accepts any shape; the output
// has the shape of the input. No weights.
//
// Source: Clevert et al., arXiv:1511.07289; keras.layers.ELU.
class ELULayer : public Layer {
 public:
  explicit ELULayer(const ELUOptions& options)
      : Layer(options.name), alpha_(options.alpha) {}

  void VisitConfig(ConfigVisitor& visitor) override {
    visitor.Visit("alpha", alpha_);
  }

 protected:
  bool keeps_mask() const override { return true; }
  Value Call(Value x, const CallContext&) override { return Elu(x, alpha_); }

 private:
  double alpha_;
};

// Equivalent to: keras.layers.ELU.
inline LayerPtr ELU(const ELUOptions& options = {}) {
  return std::make_shared<ELULayer>(options);
}

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_ELU_H_
