#ifndef COMMON_LEARN_NN_ACTIVATIONS_H_
#define COMMON_LEARN_NN_ACTIVATIONS_H_

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"

namespace muster {

// Keras' activation functions.
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
};

Value Activate(Activation activation, Value x);

// Keras' name: "relu".
absl::string_view ActivationName(Activation activation);

}  // namespace muster

#endif  // COMMON_LEARN_NN_ACTIVATIONS_H_
