#ifndef COMMON_LEARN_NN_DROPOUT_H_
#define COMMON_LEARN_NN_DROPOUT_H_

#include <cstdint>
#include <string>

#include "common/learn/nn/layer.h"

namespace muster {

struct DropoutOptions {
  uint64_t seed = 0;  // 0: derived from the model's seed.
  std::string name = "";
};

// While training, sets each element to 0 with probability `rate`, in [0, 1],
// and multiplies the others by 1 / (1 - rate). Otherwise returns its input.
// Accepts any shape; the output has the shape of the input. No weights.
//
// Source: Srivastava et al., "Dropout", 2014; keras.layers.Dropout.
class DropoutLayer : public Layer {
 public:
  DropoutLayer(double rate, const DropoutOptions& options)
      : Layer(options.name), rate_(rate), seed_(options.seed) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  bool keeps_mask() const override { return true; }
  Value Call(Value x, const CallContext& context) override;

 private:
  double rate_;
  uint64_t seed_;
};

// Equivalent to: keras.layers.Dropout.
LayerPtr Dropout(double rate, const DropoutOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_DROPOUT_H_
