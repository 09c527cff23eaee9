#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_MODEL_JSON_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_MODEL_JSON_H_

#include <optional>
#include <string>

#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "nlohmann/json.hpp"

namespace muster {

// A model as keras.Model.to_json() writes it: the layers with their
// hyperparameters (KerasLayerConfig()), and for functional models the inputs of
// each layer. Empty for models that are neither Sequential nor functional,
// which Keras does not write either.
std::optional<std::string> KerasModelJson(const Layer& model);

// The same before it is printed. `inputs` are the types of the inputs, batch
// first, for a Sequential model that does not begin with Input().
std::optional<nlohmann::ordered_json> KerasModelConfig(
    const Layer& model, absl::Span<const TensorType> inputs);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_MODEL_JSON_H_
