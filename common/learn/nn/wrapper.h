#ifndef COMMON_LEARN_NN_WRAPPER_H_
#define COMMON_LEARN_NN_WRAPPER_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "common/learn/nn/layer.h"

namespace muster {

// A layer around layers that are given to it, which have all of its weights.
//
// Equivalent to: keras.layers.Wrapper.
class WrapperLayer : public Layer {
 public:
  struct Part {
    // The attribute of Keras' layer that holds the part. Keras' files name the
    // weights of the part by it. A literal.
    absl::string_view attribute;
    LayerPtr layer;
  };

  using Layer::Layer;

  // The layers inside, in Keras' order. Empty if they are not given yet.
  virtual std::vector<Part> parts() const = 0;

 protected:
  // The layers inside cast their inputs themselves.
  Precision precision() const override { return Precision::kAsTheyCome; }
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_WRAPPER_H_
