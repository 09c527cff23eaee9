#ifndef COMMON_LEARN_NN_CALL_ORDER_H_
#define COMMON_LEARN_NN_CALL_ORDER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/learn/nn/layer.h"

namespace muster::internal {

// What lies between some outputs and others.
struct CallOrder {
  // Each after those that it takes its inputs from.
  std::vector<std::shared_ptr<const LayerCall>> calls = {};
  // Keras' order, which checkpoints and GetWeights() show: those furthest from
  // the outputs first, and of those equally far the ones first that a walk from
  // the outputs back, depth first, meets first.
  std::vector<LayerPtr> layers = {};
};

//   kInvalidArgument  an output, or what it depends on, is of no layer or does
//                     not follow from `inputs`; two layers have one name; no
//                     outputs
absl::StatusOr<CallOrder> OrderCalls(const LayerOutputs& inputs,
                                     const LayerOutputs& outputs);

}  // namespace muster::internal

#endif  // COMMON_LEARN_NN_CALL_ORDER_H_
