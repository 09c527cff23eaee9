#ifndef COMMON_LEARN_TRAIN_CALLBACKS_KERAS_MODEL_JSON_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_KERAS_MODEL_JSON_H_

#include <optional>
#include <string>

#include "common/learn/nn/layer.h"

namespace muster {

// A model as keras.Model.to_json() writes it: the layers with their
// hyperparameters (KerasLayerConfig()), and for functional models the inputs of
// each layer. Empty for models that are neither Sequential nor functional,
// which Keras does not write either.
std::optional<std::string> KerasModelJson(const Layer& model);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_KERAS_MODEL_JSON_H_
