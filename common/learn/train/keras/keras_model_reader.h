#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_MODEL_READER_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_MODEL_READER_H_

#include "absl/status/statusor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/keras/keras_object.h"

namespace muster {

// Returns the layers of a model that Keras 3 wrote (keras.Model.to_json(), or
// config.json of a .keras file): Sequential or functional, with layers that are
// shared, several inputs and outputs, and models inside models. What the model
// was compiled with is left out; see CompileOptionsFromKeras(). Errors name the
// layer, the models around it, and the argument.
//
// The JSON is not trusted; ParseKerasJson() limits its depth. Code in it
// (Lambda layers) is refused.
//   kInvalidArgument  no such model; a layer, an argument or a value that
//                     Muster does not have; or layers that are not connected
absl::StatusOr<LayerPtr> LayersFromKeras(const KerasJson& model);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_MODEL_READER_H_
