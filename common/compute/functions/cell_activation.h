#ifndef COMMON_COMPUTE_FUNCTIONS_CELL_ACTIVATION_H_
#define COMMON_COMPUTE_FUNCTIONS_CELL_ACTIVATION_H_

#include "common/compute/functions/activation_functions.h"
#include "common/core/base/host_device.h"

// The activations of recurrent cells: functions of one element, whose
// derivatives are computed with Dual numbers, and two functions of a row. For
// float and double, on the host and in device kernels.
namespace muster::functions {

// F(Name, Keras' name, function).
#define MUSTER_CELL_ACTIVATIONS(F)                  \
  F(Linear, "linear", Linear)                       \
  F(Relu, "relu", ClampBelow)                       \
  F(Relu6, "relu6", ClampTo6)                       \
  F(Sigmoid, "sigmoid", Sigmoid)                    \
  F(Tanh, "tanh", Tanh)                             \
  F(Softplus, "softplus", Softplus)                 \
  F(Softsign, "softsign", Softsign)                 \
  F(Gelu, "gelu", Gelu)                             \
  F(GeluTanh, "gelu_approximate", GeluTanh)         \
  F(Elu, "elu", EluOfOne)                           \
  F(Selu, "selu", Selu)                             \
  F(Silu, "silu", Silu)                             \
  F(LeakyRelu, "leaky_relu", LeakyReluOfKeras)      \
  F(HardSigmoid, "hard_sigmoid", HardSigmoid)       \
  F(Exponential, "exponential", Exponential)        \
  F(Mish, "mish", Mish)                             \
  F(Celu, "celu", EluOfOne)                         \
  F(HardSilu, "hard_silu", HardSilu)                \
  F(HardTanh, "hard_tanh", HardTanh)                \
  F(HardShrink, "hard_shrink", HardShrink)          \
  F(SoftShrink, "soft_shrink", SoftShrink)          \
  F(TanhShrink, "tanh_shrink", TanhShrink)          \
  F(LogSigmoid, "log_sigmoid", LogSigmoid)          \
  F(Squareplus, "squareplus", Squareplus)           \
  F(SparsePlus, "sparse_plus", SparsePlus)          \
  F(SparseSigmoid, "sparse_sigmoid", SparseSigmoid) \
  F(HardSigmoidKeras2, "hard_sigmoid_keras2", HardSigmoidKeras2)
// Activations of a row, with Forward() and Backward(): F(Name, Keras' name,
// function).
#define MUSTER_ROW_ACTIVATIONS(F)     \
  F(Softmax, "softmax", SoftmaxOfRow) \
  F(LogSoftmax, "log_softmax", LogSoftmaxOfRow)

enum class CellActivation : uint8_t {
#define MUSTER_ENUMERATOR(name, keras_name, function) k##name,
  MUSTER_CELL_ACTIVATIONS(MUSTER_ENUMERATOR)
      MUSTER_ROW_ACTIVATIONS(MUSTER_ENUMERATOR)
#undef MUSTER_ENUMERATOR
};

// A number and its derivative. An activation for a number type also computes
// its derivative when it is called with a Dual.
template <typename C>
struct Dual {
  MUSTER_HOST_DEVICE Dual(C value, C slope = C{0})  // NOLINT: numbers convert.
      : value(value), slope(slope) {}

  MUSTER_HOST_DEVICE friend Dual operator-(Dual a) {
    return {-a.value, -a.slope};
  }
  MUSTER_HOST_DEVICE friend Dual operator+(Dual a, Dual b) {
    return {a.value + b.value, a.slope + b.slope};
  }
  MUSTER_HOST_DEVICE friend Dual operator-(Dual a, Dual b) {
    return {a.value - b.value, a.slope - b.slope};
  }
  MUSTER_HOST_DEVICE friend Dual operator*(Dual a, Dual b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
  }
  MUSTER_HOST_DEVICE friend Dual operator/(Dual a, Dual b) {
    const C quotient = a.value / b.value;
    return {quotient, (a.slope - quotient * b.slope) / b.value};
  }
  MUSTER_HOST_DEVICE friend bool operator<(Dual a, Dual b) {
    return a.value < b.value;
  }
  MUSTER_HOST_DEVICE friend bool operator>(Dual a, Dual b) {
    return a.value > b.value;
  }
  MUSTER_HOST_DEVICE friend bool operator<=(Dual a, Dual b) {
    return a.value <= b.value;
  }
  MUSTER_HOST_DEVICE friend bool operator>=(Dual a, Dual b) {
    return a.value >= b.value;
  }
  MUSTER_HOST_DEVICE friend Dual exp(Dual a) {
    const C y = ::exp(a.value);
    return {y, a.slope * y};
  }
  MUSTER_HOST_DEVICE friend Dual expm1(Dual a) {
    return {::expm1(a.value), a.slope * ::exp(a.value)};
  }
  MUSTER_HOST_DEVICE friend Dual log1p(Dual a) {
    return {::log1p(a.value), a.slope / (1 + a.value)};
  }
  MUSTER_HOST_DEVICE friend Dual tanh(Dual a) {
    const C y = ::tanh(a.value);
    return {y, a.slope * (1 - y * y)};
  }
  MUSTER_HOST_DEVICE friend Dual sqrt(Dual a) {
    const C y = ::sqrt(a.value);
    return {y, a.slope / (2 * y)};
  }
  MUSTER_HOST_DEVICE friend Dual fabs(Dual a) { return a.value < 0 ? -a : a; }
  MUSTER_HOST_DEVICE friend Dual erfc(Dual a) {
    constexpr C kTwoOverSqrtPi = C(1.1283791670955126);
    return {::erfc(a.value),
            -a.slope * kTwoOverSqrtPi * ::exp(-a.value * a.value)};
  }

  C value;
  C slope;
};

// As in activation_functions.h, but with the slope 0 at the kinks, as in
// TensorFlow.
struct ClampBelow {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x <= 0 ? C{0} : x;
  }
};
struct ClampTo6 {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x <= 0 ? C{0} : x >= 6 ? C{6} : x;
  }
};
struct Linear {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x;
  }
};
struct EluOfOne {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return functions::Elu{1}(x);
  }
};
struct Selu {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return functions::Elu{1.6732632423543772}(x)*C(1.0507009873554805);
  }
};
struct Silu {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x * Sigmoid()(x);
  }
};
struct LeakyReluOfKeras {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return functions::LeakyRelu{0.2}(x);
  }
};
struct HardSigmoid {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return ClampTo6()(x + C{3}) / C{6};
  }
};
struct Exponential {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return exp(x);
  }
};
struct Mish {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x * tanh(Softplus()(x));
  }
};
struct HardSilu {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x * HardSigmoid()(x);
  }
};
struct HardTanh {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x < -1 ? C{-1} : x > 1 ? C{1} : x;
  }
};
struct HardShrink {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x > C(0.5) ? x : x < C(-0.5) ? x : x * C{0};
  }
};
struct SoftShrink {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return ClampBelow()(x - C(0.5)) - ClampBelow()(-x - C(0.5));
  }
};
struct TanhShrink {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x - tanh(x);
  }
};
struct LogSigmoid {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return -Softplus()(-x);
  }
};
struct Squareplus {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return (x + sqrt(x * x + C{4})) * C(0.5);
  }
};
struct SparsePlus {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    const C above = ClampBelow()(x + C{1});
    return x < 1 ? C(0.25) * above * above : x;
  }
};
struct SparseSigmoid {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    return x >= 1 ? C{1} : C(0.5) * ClampBelow()(x + C{1});
  }
};
struct HardSigmoidKeras2 {
  template <typename C>
  MUSTER_HOST_DEVICE C operator()(C x) const {
    const C y = C(0.2) * x + C(0.5);
    return y <= 0 ? C{0} : y >= 1 ? C{1} : y;
  }
};

// Returns the gradient of F at x, times the gradient `dy` of its result.
template <typename F, typename C>
MUSTER_HOST_DEVICE C GradientOf(C x, C dy) {
  return dy * F()(Dual<C>(x, C{1})).slope;
}

template <typename C>
MUSTER_HOST_DEVICE C LogSumExp(int64_t count, const C* x) {
  C max = count == 0 ? C{0} : x[0];
  for (int64_t i = 1; i < count; ++i) {
    if (max < x[i]) max = x[i];
  }
  C sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += ::exp(x[i] - max);
  return max + ::log(sum);
}

// `x` and `y` are the input and the output of Forward; `dy` and `dx` their
// gradients. `y` may be `x`, and `dx` may be `dy`.
struct SoftmaxOfRow {
  template <typename C>
  MUSTER_HOST_DEVICE static void Forward(int64_t count, const C* x, C* y) {
    const C log_sum = LogSumExp(count, x);
    for (int64_t i = 0; i < count; ++i) y[i] = ::exp(x[i] - log_sum);
  }
  template <typename C>
  MUSTER_HOST_DEVICE static void Backward(int64_t count, const C*, const C* y,
                                          const C* dy, C* dx) {
    C sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += dy[i] * y[i];
    for (int64_t i = 0; i < count; ++i) dx[i] = y[i] * (dy[i] - sum);
  }
};
struct LogSoftmaxOfRow {
  template <typename C>
  MUSTER_HOST_DEVICE static void Forward(int64_t count, const C* x, C* y) {
    const C log_sum = LogSumExp(count, x);
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] - log_sum;
  }
  template <typename C>
  MUSTER_HOST_DEVICE static void Backward(int64_t count, const C*, const C* y,
                                          const C* dy, C* dx) {
    C sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += dy[i];
    for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] - ::exp(y[i]) * sum;
  }
};

}  // namespace muster::functions

#endif  // COMMON_COMPUTE_FUNCTIONS_CELL_ACTIVATION_H_
