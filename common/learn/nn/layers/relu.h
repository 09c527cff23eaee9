#ifndef COMMON_LEARN_NN_LAYERS_RELU_H_
#define COMMON_LEARN_NN_LAYERS_RELU_H_

#include <optional>
#include <string>

#include "common/learn/nn/layer.h"

namespace muster {

struct ReLUOptions {
  std::optional<double> max_value = std::nullopt;  // Unset: no limit.
  double negative_slope = 0;
  double threshold = 0;
  std::string name = "";
};

//   y = max_value                          where x >= max_value
//   y = x                                  where threshold <= x < max_value
//   y = negative_slope * (x - threshold)   elsewhere
//
// Accepts any shape; the output has the shape of the input. No weights.
//
// Source: keras.layers.ReLU.
class ReLULayer : public Layer {
 public:
  explicit ReLULayer(const ReLUOptions& options)
      : Layer(options.name), options_(options) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  bool keeps_mask() const override { return true; }
  Value Call(Value x, const CallContext& context) override;

 private:
  ReLUOptions options_;
};

// Equivalent to: keras.layers.ReLU.
LayerPtr ReLU(const ReLUOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_RELU_H_
