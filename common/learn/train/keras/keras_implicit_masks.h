#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_IMPLICIT_MASKS_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_IMPLICIT_MASKS_H_

#include "common/learn/train/keras/keras_object.h"

namespace muster {

// Removes what Keras computes of masks from a functional model's config.
//
// Where a layer of a functional model masks its output (Embedding with
// mask_zero, Masking), Keras computes the mask by operations, which are entries
// of "layers" (NotEqual, Any, ...), and calls the layers that follow with it
// ("mask", "query_mask", ...). Muster's layers pass masks on by themselves
// (common/learn/nn/masks.h), and Keras computes them again when it loads the
// model.
//
// A mask that is not computed in this way, or that is given to a layer that
// does not follow the one that masks, is left as it is.
void RemoveImplicitMasks(KerasJson* config);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_IMPLICIT_MASKS_H_
