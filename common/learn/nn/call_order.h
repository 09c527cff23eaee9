#ifndef COMMON_LEARN_NN_CALL_ORDER_H_
#define COMMON_LEARN_NN_CALL_ORDER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/learn/nn/layer.h"

namespace muster::internal {

// The calls and layers between the inputs and the outputs of a functional
// model.
struct CallOrder {
  // In topological order.
  std::vector<std::shared_ptr<const LayerCall>> calls = {};
  // In Keras' order, which checkpoints and GetWeights() use: by decreasing
  // distance from the outputs. Layers at the same distance are in the order of
  // a depth-first traversal from the outputs.
  std::vector<LayerPtr> layers = {};
};

// Returns the calls that `outputs` depend on.
//   kInvalidArgument  an input or output belongs to no layer; an output depends
//                     on a call that does not follow from `inputs`; two layers
//                     have the same name; no inputs or no outputs
absl::StatusOr<CallOrder> OrderCalls(const LayerOutputs& inputs,
                                     const LayerOutputs& outputs);

}  // namespace muster::internal

#endif  // COMMON_LEARN_NN_CALL_ORDER_H_
