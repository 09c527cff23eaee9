#ifndef COMMON_LEARN_NN_ACTIVATIONS_H_
#define COMMON_LEARN_NN_ACTIVATIONS_H_

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"

namespace muster {

// Keras' activation functions. Source: https://keras.io/api/layers/activations/
enum class Activation {
  kLinear,
  kRelu,
  kRelu6,
  kSigmoid,
  kTanh,
  kSoftplus,
  kSoftsign,
  kSoftmax,  // Over the last axis, as kLogSoftmax.
  kLogSoftmax,
  kGelu,
  kGeluApproximate,  // By tanh.
  kElu,
  kSelu,
  kSilu,
  kLeakyRelu,  // Slope 0.2 below zero.
  kHardSigmoid,
  kExponential,
  kMish,
  kCelu,      // With alpha 1, where it is elu.
  kHardSilu,  // Also known as hard_swish.
  kHardTanh,
  kHardShrink,  // Threshold 0.5, as kSoftShrink.
  kSoftShrink,
  kTanhShrink,
  kLogSigmoid,
  kSquareplus,  // With b = 4.
  kSparsePlus,
  kSparseSigmoid,
  kHardSigmoidKeras2,  // clip(0.2 x + 0.5, 0, 1): hard_sigmoid of Keras 2.
};

Value Activate(Activation activation, Value x);

// Keras' name: "relu".
absl::string_view ActivationName(Activation activation);

}  // namespace muster

#endif  // COMMON_LEARN_NN_ACTIVATIONS_H_
