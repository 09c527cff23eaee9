#ifndef COMMON_LEARN_TRAIN_CALLBACKS_KERAS_MODEL_JSON_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_KERAS_MODEL_JSON_H_

#include <optional>
#include <string>

#include "common/learn/nn/layer.h"

namespace muster {

// The structure of a model as keras.Model.to_json() writes it: the layers,
// their classes, names and dtypes, and for functional models their inputs.
// Omits the configuration of the layers, so TensorBoard can draw the model but
// Keras cannot load it. Empty for models that are neither Sequential nor
// functional, which Keras does not write either.
std::optional<std::string> KerasModelJson(const Layer& model);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_KERAS_MODEL_JSON_H_
