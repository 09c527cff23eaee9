#ifndef COMMON_LEARN_TRAIN_ADAPT_H_
#define COMMON_LEARN_TRAIN_ADAPT_H_

#include "absl/status/status.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layer.h"

namespace muster {

// Goes through `data` once for each Normalization among the layers of a
// sequential or functional model that needs it, in this process, and shows it
// what the layers before it make of the data's inputs. Weights cannot stand
// before such a layer.
//
// Equivalent to: keras.layers.Normalization.adapt().
//   kInvalidArgument  the data never ends, has no elements, or does not fit
absl::Status AdaptNormalization(const LayerPtr& model, const Dataset& data);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_ADAPT_H_
