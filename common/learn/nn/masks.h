#ifndef COMMON_LEARN_NN_MASKS_H_
#define COMMON_LEARN_NN_MASKS_H_

#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "common/compute/graph/graph_builder.h"

namespace muster {

// The masks of the values of a model: bool [batch, time], false where a
// position is padding. Embedding(mask_zero) sets them. Layers that work
// position by position pass them on, recurrent layers and attention apply them,
// and the losses and metrics of Fit() and Evaluate() exclude masked positions
// of the outputs. A custom training step passes a Masks object to the call and
// the output's mask to the loss:
//
//   Masks masks;
//   CallContext context = step.context;
//   context.masks = &masks;
//   const Value tags = (*step.layer)(ids, context);
//   const Value mean = loss(labels, tags, Value(), masks.Find(tags));
//
// Not thread-safe. Equivalent to: `_keras_mask` of Keras' tensors.
class Masks {
 public:
  // Returns the mask of `x`; a poisoned value if no position is masked.
  Value Find(Value x) const;
  void Set(Value x, Value mask);

 private:
  // Values of branches and loops belong to other graphs than the model's.
  using ValueKey = std::tuple<const GraphBuilder*, int, int>;
  static ValueKey Key(Value x);

  absl::flat_hash_map<ValueKey, Value> masks_;
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_MASKS_H_
