#ifndef COMMON_LEARN_NN_WRAPPER_H_
#define COMMON_LEARN_NN_WRAPPER_H_

#include <string>
#include <vector>

#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"

namespace muster {

// A layer around layers that are given to it, which have most or all of its
// weights.
//
// Equivalent to: keras.layers.Wrapper.
class WrapperLayer : public Layer {
 public:
  struct Part {
    // The attribute of Keras' layer that holds the part. Keras' files name the
    // weights of the part by it.
    std::string attribute;
    LayerPtr layer;
  };

  using Layer::Layer;

  // The layers inside, in Keras' order. Empty if they are not given yet.
  virtual std::vector<Part> parts() const = 0;
  // own_weights(), then those of the layers inside.
  std::vector<Weight> weights() const override;

  // The weights that Keras' files have for the wrapper itself, in their order.
  // Those of a part may be among them.
  virtual std::vector<Weight> own_weights() const { return {}; }

 protected:
  // The layers inside cast their inputs themselves.
  Precision precision() const override { return Precision::kAsTheyCome; }
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_WRAPPER_H_
