#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_LAYER_KIND_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_LAYER_KIND_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/learn/nn/layers/layers.h"

namespace muster {

// Returns the entry of kLayerKinds of a class of Keras; null if there is none.
const LayerKind* FindKerasLayerKind(absl::string_view class_name);

// The error of a class that is not in the table; names similar ones.
absl::Status UnknownKerasLayer(absl::string_view place,
                               absl::string_view class_name);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_LAYER_KIND_H_
