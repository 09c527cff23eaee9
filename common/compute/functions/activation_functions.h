#ifndef COMMON_COMPUTE_FUNCTIONS_ACTIVATION_FUNCTIONS_H_
#define COMMON_COMPUTE_FUNCTIONS_ACTIVATION_FUNCTIONS_H_

#include "common/compute/functions/numbers.h"

// Compute one element of the activations, of their gradients and of elementwise
// losses, as in binary.h. A gradient takes the gradient `g` of y, and x or y.
namespace muster::functions {

// Functions of all numbers: of one operand, and of two.
#define MUSTER_RECTIFIER_FUNCTIONS(F) F(Relu) F(Relu6)
#define MUSTER_RECTIFIER_GRADIENTS(F) F(ReluGrad) F(Relu6Grad)
// For floating-point numbers, with the attribute alpha.
#define MUSTER_ALPHA_FUNCTIONS(F) F(LeakyRelu) F(Elu)
#define MUSTER_ALPHA_GRADIENTS(F) F(LeakyReluGrad) F(EluGrad)
// For floating-point numbers. GeluTanh and GeluTanhGrad are the ops Gelu and
// GeluGrad with the attribute approximate.
#define MUSTER_SMOOTH_FUNCTIONS(F) F(Sigmoid) F(Tanh) F(Softplus) F(Softsign)
#define MUSTER_SMOOTH_GRADIENTS(F) F(SigmoidGrad) F(TanhGrad)
#define MUSTER_GELU_FUNCTIONS(F) F(Gelu) F(GeluTanh)
#define MUSTER_GELU_GRADIENTS(F) F(GeluGrad) F(GeluTanhGrad)

struct Relu {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x < 0 ? C{0} : x;
  }
};

struct ReluGrad {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C g, C x) const {
    return x > 0 ? g : C{0};
  }
};

struct Relu6 {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x < 0 ? C{0} : x > 6 ? C{6} : x;
  }
};

struct Relu6Grad {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C g, C x) const {
    return x > 0 && x < 6 ? g : C{0};
  }
};

struct LeakyRelu {
  double alpha;
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x > 0 ? x : static_cast<C>(alpha) * x;
  }
};

struct LeakyReluGrad {
  double alpha;
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C g, C x) const {
    return x > 0 ? g : static_cast<C>(alpha) * g;
  }
};

struct Elu {
  double alpha;
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x < 0 ? static_cast<C>(alpha) * expm1(x) : x;
  }
};

struct EluGrad {
  double alpha;
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C g, C x) const {
    return x < 0 ? g * static_cast<C>(alpha) * exp(x) : g;
  }
};

struct Sigmoid {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    // exp() of a positive argument may overflow.
    const C e = exp(-fabs(x));
    return (x >= 0 ? C{1} : e) / (1 + e);
  }
};

struct SigmoidGrad {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C g, C y) const {
    return g * y * (1 - y);
  }
};

struct Tanh {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return tanh(x);
  }
};

struct TanhGrad {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C g, C y) const {
    return g * (1 - y * y);
  }
};

struct Softplus {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
  }
};

struct Softsign {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x / (1 + fabs(x));
  }
};

inline constexpr double kSqrtHalf = 0.70710678118654752440;
inline constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
inline constexpr double kInvSqrtTwoPi = 0.39894228040143267794;
inline constexpr double kGeluCubic = 0.044715;

// Values of the standard normal distribution at one number.
template <typename C>
struct Normal {
  C cdf;
  C exponential;  // exp(-x * x / 2): the density times sqrt(2 pi).
};

template <typename C>
MUSTER_HOST_DEVICE Normal<C> NormalAt(C x) {
  return {C(0.5) * erfc(-x * C(kSqrtHalf)), exp(C(-0.5) * x * x)};
}

// The tail beyond |x| is k * P(k) * exp(-x * x / 2), k = 1 / (1 + 0.3 |x|), as
// in formula 7.1.26 of Abramowitz and Stegun. P is fitted to a relative error
// of 1.5e-7, so the tail's error is that of the argument of exp. erfc() and
// exp() take four times as many instructions.
MUSTER_HOST_DEVICE inline Normal<float> NormalAt(float x) {
  constexpr float kHalfLog2E = 0.72134752044448170368f;
  const float k = QuickReciprocal(1 + 0.3f * fabs(x));
  float sum = 0.0356748812f;
  sum = sum * k - 0.157203496f;
  sum = sum * k + 0.206354156f;
  sum = sum * k - 0.0536842085f;
  sum = sum * k + 0.128561899f;
  sum = sum * k + 0.0999134183f;
  sum = sum * k + 0.120753974f;
  sum = sum * k + 0.119629301f;
  const float exponential = QuickExp2(x * (-kHalfLog2E * x));
  const float tail = sum * k * exponential;
  return {x > 0 ? 1 - tail : tail, exponential};
}

struct Gelu {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x * NormalAt(x).cdf;
  }
};

struct GeluGrad {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C g, C x) const {
    const Normal<C> normal = NormalAt(x);
    return g * (normal.cdf + x * C(kInvSqrtTwoPi) * normal.exponential);
  }
};

template <typename C>
MUSTER_HOST_DEVICE C TanhOfGelu(C x) {
  return tanh(C(kSqrtTwoOverPi) * (x + C(kGeluCubic) * x * x * x));
}

struct GeluTanh {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return C(0.5) * x * (1 + TanhOfGelu(x));
  }
};

struct GeluTanhGrad {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C g, C x) const {
    const C t = TanhOfGelu(x);
    const C rest = 1 - t * t;
    // Where tanh is flat, the square of x may overflow.
    if (rest == 0) return g * (C(0.5) * (1 + t));
    const C slope = C(kSqrtTwoOverPi) * (1 + C(3 * kGeluCubic) * x * x);
    return g * (C(0.5) * (1 + t) + C(0.5) * x * rest * slope);
  }
};

// -z log(sigmoid(x)) - (1 - z) log(1 - sigmoid(x)), rearranged so that
// exponentials do not overflow.
struct SigmoidCrossEntropy {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x, C z) const {
    return (x < 0 ? C{0} : x) - x * z + log1p(exp(-fabs(x)));
  }
};

}  // namespace muster::functions

#endif  // COMMON_COMPUTE_FUNCTIONS_ACTIVATION_FUNCTIONS_H_
