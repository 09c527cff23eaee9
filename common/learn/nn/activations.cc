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

// The threshold of hard_shrink and soft_shrink.
constexpr double kShrinkage = 0.5;

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
    case Activation::kMish:
      return x * Tanh(Softplus(x));
    case Activation::kCelu:
      return Elu(x);
    case Activation::kHardSilu:
      return x * (Relu6(x + 3.0) / 6.0);
    case Activation::kHardTanh:
      return Minimum(Maximum(x, -1.0), 1.0);
    case Activation::kHardShrink:
      return Select(Abs(x) > kShrinkage, x, ZerosLike(x));
    case Activation::kSoftShrink:
      return Relu(x - kShrinkage) - Relu(-x - kShrinkage);
    case Activation::kTanhShrink:
      return x - Tanh(x);
    case Activation::kLogSigmoid:
      return -Softplus(-x);
    case Activation::kSquareplus:
      return (x + Sqrt(Square(x) + 4.0)) * 0.5;
    case Activation::kSparsePlus:
      return Select(x < 1.0, 0.25 * Square(Relu(x + 1.0)), x);
    case Activation::kSparseSigmoid:
      return Select(x >= 1.0, OnesLike(x), 0.5 * Relu(x + 1.0));
    case Activation::kHardSigmoidKeras2:
      return Minimum(Maximum(0.2 * x + 0.5, 0.0), 1.0);
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
    case Activation::kMish:
      return "mish";
    case Activation::kCelu:
      return "celu";
    case Activation::kHardSilu:
      return "hard_silu";
    case Activation::kHardTanh:
      return "hard_tanh";
    case Activation::kHardShrink:
      return "hard_shrink";
    case Activation::kSoftShrink:
      return "soft_shrink";
    case Activation::kTanhShrink:
      return "tanh_shrink";
    case Activation::kLogSigmoid:
      return "log_sigmoid";
    case Activation::kSquareplus:
      return "squareplus";
    case Activation::kSparsePlus:
      return "sparse_plus";
    case Activation::kSparseSigmoid:
      return "sparse_sigmoid";
    case Activation::kHardSigmoidKeras2:
      return "hard_sigmoid_keras2";
  }
  return "";
}

}  // namespace muster
