#ifndef COMMON_LEARN_NN_ADAPTABLE_LAYER_H_
#define COMMON_LEARN_NN_ADAPTABLE_LAYER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"

namespace muster {

// A layer with a state that is computed from data before training, such as a
// vocabulary. Adapt() (common/learn/train/adapt.h) goes through a dataset:
//
//   for each batch: layer.Observe(batch);
//   layer.FinishObserving();
//
// Equivalent to: a layer of Keras with adapt().
class AdaptableLayer : public Layer {
 public:
  using Layer::Layer;

  // True if the layer has no state yet and cannot be called before it has.
  virtual bool NeedsData() const = 0;

  // Adds a batch to what was observed.
  //   kInvalidArgument     the data do not fit the layer
  //   kFailedPrecondition  the layer has a state already
  virtual absl::Status Observe(const Tensor& data) = 0;

  // Computes the state from what was observed.
  //   kInvalidArgument  nothing follows from it; says why
  virtual absl::Status FinishObserving() { return absl::OkStatus(); }

  // True if the weights are the whole state, so that loading them restores it.
  virtual bool has_state_in_weights() const { return false; }

  // The state, for SetAdaptedState() of the same layer in another process.
  virtual std::vector<Tensor> AdaptedState() const = 0;
  //   kInvalidArgument  `state` comes from another layer
  virtual absl::Status SetAdaptedState(absl::Span<const Tensor> state) = 0;
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_ADAPTABLE_LAYER_H_
