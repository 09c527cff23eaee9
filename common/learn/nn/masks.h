#ifndef COMMON_LEARN_NN_MASKS_H_
#define COMMON_LEARN_NN_MASKS_H_

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/compute/graph/graph_builder.h"

namespace muster {

// Which positions of the values of a model are padding, bool [batch, time] and
// false there: what Embedding(mask_zero) says, layers that work position by
// position hand on, and recurrent layers and attention heed; of an output, the
// losses and metrics of Fit() and Evaluate() leave them out. A step of one's
// own lends the call its masks and passes on what they say:
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
  // A poisoned value when all of `x` counts.
  Value Find(Value x) const {
    const auto found = masks_.find(Key(x));
    return found == masks_.end() ? Value() : found->second;
  }
  void Set(Value x, Value mask) {
    if (x.ok() && mask.ok()) masks_[Key(x)] = mask;
  }

 private:
  static std::pair<int, int> Key(Value x) {
    return {x.output().node, x.output().output};
  }

  absl::flat_hash_map<std::pair<int, int>, Value> masks_;
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_MASKS_H_
