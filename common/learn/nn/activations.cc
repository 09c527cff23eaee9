#include "common/learn/nn/activations.h"

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"

namespace muster {
namespace {

// Those for which activations keep mean 0 and variance 1 (Klambauer et al.,
// "Self-normalizing neural networks", 2017).
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

}  // namespace

Value Activate(Activation activation, Value x) {
  switch (activation) {
    case Activation::kLinear:
      return x;
    case Activation::kRelu:
      return Relu(x);
    case Activation::kRelu6:
      return Relu6(x);
    case Activation::kSigmoid:
      return Sigmoid(x);
    case Activation::kTanh:
      return Tanh(x);
    case Activation::kSoftplus:
      return Softplus(x);
    case Activation::kSoftsign:
      return Softsign(x);
    case Activation::kSoftmax:
      return Softmax(x);
    case Activation::kLogSoftmax:
      return LogSoftmax(x);
    case Activation::kGelu:
      return Gelu(x);
    case Activation::kGeluApproximate:
      return Gelu(x, {.approximate = true});
    case Activation::kElu:
      return Elu(x);
    case Activation::kSelu:
      return Elu(x, kSeluAlpha) * kSeluScale;
    case Activation::kSilu:
      return x * Sigmoid(x);
    case Activation::kLeakyRelu:
      return LeakyRelu(x);
    case Activation::kHardSigmoid:
      return Relu6(x + 3.0) / 6.0;
    case Activation::kExponential:
      return Exp(x);
  }
  return x;
}

absl::string_view ActivationName(Activation activation) {
  switch (activation) {
    case Activation::kLinear:
      return "linear";
    case Activation::kRelu:
      return "relu";
    case Activation::kRelu6:
      return "relu6";
    case Activation::kSigmoid:
      return "sigmoid";
    case Activation::kTanh:
      return "tanh";
    case Activation::kSoftplus:
      return "softplus";
    case Activation::kSoftsign:
      return "softsign";
    case Activation::kSoftmax:
      return "softmax";
    case Activation::kLogSoftmax:
      return "log_softmax";
    case Activation::kGelu:
      return "gelu";
    case Activation::kGeluApproximate:
      return "gelu_approximate";
    case Activation::kElu:
      return "elu";
    case Activation::kSelu:
      return "selu";
    case Activation::kSilu:
      return "silu";
    case Activation::kLeakyRelu:
      return "leaky_relu";
    case Activation::kHardSigmoid:
      return "hard_sigmoid";
    case Activation::kExponential:
      return "exponential";
  }
  return "";
}

}  // namespace muster
