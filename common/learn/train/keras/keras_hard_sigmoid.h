#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_HARD_SIGMOID_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_HARD_SIGMOID_H_

#include "absl/strings/string_view.h"
#include "common/learn/train/keras/keras_object.h"

// hard_sigmoid of Keras 2, clip(0.2 x + 0.5, 0, 1), in files of Keras 3, which
// has no function for it: an activation that is a model of two layers, which
// compute relu6(1.2 x + 3) / 6.
namespace muster {

// Activation::kHardSigmoidKeras2.
inline constexpr absl::string_view kHardSigmoidKeras2 = "hard_sigmoid_keras2";

// Returns the activation as Keras 3 reads it.
KerasJson HardSigmoidKeras2Json();

// Returns true for HardSigmoidKeras2Json(), also after Keras 3 saved it again.
bool IsHardSigmoidKeras2(const KerasJson& activation);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_HARD_SIGMOID_H_
