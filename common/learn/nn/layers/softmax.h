#ifndef COMMON_LEARN_NN_LAYERS_SOFTMAX_H_
#define COMMON_LEARN_NN_LAYERS_SOFTMAX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/learn/nn/layer.h"

namespace muster {

struct SoftmaxOptions {
  // The axes whose elements sum to 1 together. The batch axis, 0, is refused.
  std::vector<int64_t> axis = {-1};
  std::string name = "";
};

// y = exp(x - max(x)) / sum(exp(x - max(x))), with maximum and sum over `axis`.
// The output has the shape of the input, which has at least two axes. No
// weights.
//
// A mask of the input must have as many axes as the input, and broadcast to it:
// masked elements are 0 and count in no sum. Other masks are refused, as in
// Keras.
//
// Source: keras.layers.Softmax.
class SoftmaxLayer : public Layer {
 public:
  explicit SoftmaxLayer(const SoftmaxOptions& options)
      : Layer(options.name), axis_(options.axis) {}

  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  bool keeps_mask() const override { return true; }
  Value Call(Value x, const CallContext& context) override;

 private:
  std::vector<int64_t> axis_;
};

// Equivalent to: keras.layers.Softmax.
LayerPtr Softmax(const SoftmaxOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_SOFTMAX_H_
