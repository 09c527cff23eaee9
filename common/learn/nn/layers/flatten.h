#ifndef COMMON_LEARN_NN_LAYERS_FLATTEN_H_
#define COMMON_LEARN_NN_LAYERS_FLATTEN_H_

#include <string>

#include "common/learn/nn/layer.h"

namespace muster {

struct FlattenOptions {
  std::string name = "";
};

// Merges all axes but the batch. Input [batch, d1, d2, ...], output [batch, d1
// * d2 * ...]. An input of [batch] becomes [batch, 1]. No weights.
//
// Source: keras.layers.Flatten.
class FlattenLayer : public Layer {
 public:
  explicit FlattenLayer(const FlattenOptions& options) : Layer(options.name) {}

 protected:
  Value Call(Value x, const CallContext& context) override;
};

// Equivalent to: keras.layers.Flatten.
LayerPtr Flatten(const FlattenOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_FLATTEN_H_
