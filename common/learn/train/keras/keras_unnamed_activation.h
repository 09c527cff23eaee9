#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_UNNAMED_ACTIVATION_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_UNNAMED_ACTIVATION_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/learn/train/keras/keras_object.h"

// Activations that Keras 3 has no name for, in its files: objects that compute
// them.
//
//   hard_sigmoid_keras2  clip(0.2 x + 0.5, 0, 1), the hard_sigmoid of Keras 2:
//                        a model of two layers, relu6(1.2 x + 3) / 6
//   gelu_approximate     the operation Gelu(approximate=True)
namespace muster {

// Returns the activation with this name (ActivationName()) as Keras 3 reads it;
// none if Keras has the name.
std::optional<KerasJson> UnnamedActivationJson(absl::string_view name);

// Returns the name of the activation that such an object computes, also after
// Keras 3 saved it again; empty for other objects.
std::string UnnamedActivationOf(const KerasJson& activation);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_UNNAMED_ACTIVATION_H_
