#ifndef COMMON_LEARN_NN_LAYERS_ACTIVITY_REGULARIZATION_H_
#define COMMON_LEARN_NN_LAYERS_ACTIVITY_REGULARIZATION_H_

#include <string>

#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"

namespace muster {

struct ActivityRegularizationOptions {
  double l1 = 0;
  double l2 = 0;
  std::string name = "";
};

// Returns its input, and adds a penalty on it to the loss of the step
// (CallContext::losses), in training and in evaluation:
//
//   (l1 * sum(|x|) + l2 * sum(x^2)) / batch
//
// Replicas that train in sync have the penalty of the global batch. A custom
// step that passes no CallContext::losses has none. Input and output of any
// shape. No weights.
//
// Source: keras.layers.ActivityRegularization.
class ActivityRegularizationLayer : public Layer {
 public:
  explicit ActivityRegularizationLayer(
      const ActivityRegularizationOptions& options)
      : Layer(options.name), factors_{.l1 = options.l1, .l2 = options.l2} {}

  void VisitConfig(ConfigVisitor& visitor) override {
    factors_.VisitConfig(visitor);
  }

 protected:
  bool keeps_mask() const override { return true; }
  Value Call(Value x, const CallContext& context) override;

 private:
  L1L2Options factors_;
};

// Equivalent to: keras.layers.ActivityRegularization.
LayerPtr ActivityRegularization(
    const ActivityRegularizationOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_ACTIVITY_REGULARIZATION_H_
