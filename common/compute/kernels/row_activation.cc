#include "common/compute/kernels/row_activation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/functions/activation.h"

namespace muster {
namespace {

// A number and its derivative. An activation that is written for a number type
// gives its own derivative when it is computed with this one.
template <typename C>
struct Dual {
  Dual(C value, C slope = C{0})  // NOLINT: numbers convert.
      : value(value), slope(slope) {}

  friend Dual operator-(Dual a) { return {-a.value, -a.slope}; }
  friend Dual operator+(Dual a, Dual b) {
    return {a.value + b.value, a.slope + b.slope};
  }
  friend Dual operator-(Dual a, Dual b) {
    return {a.value - b.value, a.slope - b.slope};
  }
  friend Dual operator*(Dual a, Dual b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
  }
  friend Dual operator/(Dual a, Dual b) {
    const C quotient = a.value / b.value;
    return {quotient, (a.slope - quotient * b.slope) / b.value};
  }
  friend bool operator<(Dual a, Dual b) { return a.value < b.value; }
  friend bool operator>(Dual a, Dual b) { return a.value > b.value; }
  friend bool operator<=(Dual a, Dual b) { return a.value <= b.value; }
  friend bool operator>=(Dual a, Dual b) { return a.value >= b.value; }
  friend Dual exp(Dual a) {
    const C y = std::exp(a.value);
    return {y, a.slope * y};
  }
  friend Dual expm1(Dual a) {
    return {std::expm1(a.value), a.slope * std::exp(a.value)};
  }
  friend Dual log1p(Dual a) {
    return {std::log1p(a.value), a.slope / (1 + a.value)};
  }
  friend Dual tanh(Dual a) {
    const C y = std::tanh(a.value);
    return {y, a.slope * (1 - y * y)};
  }
  friend Dual sqrt(Dual a) {
    const C y = std::sqrt(a.value);
    return {y, a.slope / (2 * y)};
  }
  friend Dual fabs(Dual a) { return a.value < 0 ? -a : a; }
  friend Dual erfc(Dual a) {
    constexpr C kTwoOverSqrtPi = C(1.1283791670955126);
    return {std::erfc(a.value),
            -a.slope * kTwoOverSqrtPi * std::exp(-a.value * a.value)};
  }

  C value;
  C slope;
};

// As functions/activation.h, but with the slope 0 at the kinks, as TensorFlow.
struct ClampBelow {
  template <typename C>
  C operator()(C x) const {
    return x <= 0 ? C{0} : x;
  }
};
struct ClampTo6 {
  template <typename C>
  C operator()(C x) const {
    return x <= 0 ? C{0} : x >= 6 ? C{6} : x;
  }
};
struct Linear {
  template <typename C>
  C operator()(C x) const {
    return x;
  }
};
struct Elu {
  template <typename C>
  C operator()(C x) const {
    return functions::Elu{1}(x);
  }
};
struct Selu {
  template <typename C>
  C operator()(C x) const {
    return functions::Elu{1.6732632423543772}(x)*C(1.0507009873554805);
  }
};
struct Silu {
  template <typename C>
  C operator()(C x) const {
    return x * functions::Sigmoid()(x);
  }
};
struct LeakyRelu {
  template <typename C>
  C operator()(C x) const {
    return functions::LeakyRelu{0.2}(x);
  }
};
struct HardSigmoid {
  template <typename C>
  C operator()(C x) const {
    return ClampTo6()(x + C{3}) / C{6};
  }
};
struct Exponential {
  template <typename C>
  C operator()(C x) const {
    using std::exp;
    return exp(x);
  }
};
struct Mish {
  template <typename C>
  C operator()(C x) const {
    using std::tanh;
    return x * tanh(functions::Softplus()(x));
  }
};
struct HardSilu {
  template <typename C>
  C operator()(C x) const {
    return x * HardSigmoid()(x);
  }
};
struct HardTanh {
  template <typename C>
  C operator()(C x) const {
    return x < -1 ? C{-1} : x > 1 ? C{1} : x;
  }
};
struct HardShrink {
  template <typename C>
  C operator()(C x) const {
    return x > C(0.5) ? x : x < C(-0.5) ? x : x * C{0};
  }
};
struct SoftShrink {
  template <typename C>
  C operator()(C x) const {
    return ClampBelow()(x - C(0.5)) - ClampBelow()(-x - C(0.5));
  }
};
struct TanhShrink {
  template <typename C>
  C operator()(C x) const {
    using std::tanh;
    return x - tanh(x);
  }
};
struct LogSigmoid {
  template <typename C>
  C operator()(C x) const {
    return -functions::Softplus()(-x);
  }
};
struct Squareplus {
  template <typename C>
  C operator()(C x) const {
    using std::sqrt;
    return (x + sqrt(x * x + C{4})) * C(0.5);
  }
};
struct SparsePlus {
  template <typename C>
  C operator()(C x) const {
    const C above = ClampBelow()(x + C{1});
    return x < 1 ? C(0.25) * above * above : x;
  }
};
struct SparseSigmoid {
  template <typename C>
  C operator()(C x) const {
    return x >= 1 ? C{1} : C(0.5) * ClampBelow()(x + C{1});
  }
};

template <typename F, typename C>
void ForwardEach(int64_t count, const C* x, C* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = F()(x[i]);
}

template <typename F, typename C>
void BackwardEach(int64_t count, const C* x, const C*, const C* dy, C* dx) {
  for (int64_t i = 0; i < count; ++i) {
    dx[i] = dy[i] * F()(Dual<C>(x[i], C{1})).slope;
  }
}

template <typename F, typename C>
constexpr RowActivation<C> Each() {
  return {ForwardEach<F, C>, BackwardEach<F, C>};
}

template <typename C>
C LogSumExp(int64_t count, const C* x) {
  const C max = count == 0 ? C{0} : *std::max_element(x, x + count);
  C sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(x[i] - max);
  return max + std::log(sum);
}

template <typename C>
void LogSoftmax(int64_t count, const C* x, C* y) {
  const C log_sum = LogSumExp(count, x);
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] - log_sum;
}

template <typename C>
void LogSoftmaxGrad(int64_t count, const C*, const C* y, const C* dy, C* dx) {
  C sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += dy[i];
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] - std::exp(y[i]) * sum;
}

template <typename C>
void Softmax(int64_t count, const C* x, C* y) {
  const C log_sum = LogSumExp(count, x);
  for (int64_t i = 0; i < count; ++i) y[i] = std::exp(x[i] - log_sum);
}

template <typename C>
void SoftmaxGrad(int64_t count, const C*, const C* y, const C* dy, C* dx) {
  C sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += dy[i] * y[i];
  for (int64_t i = 0; i < count; ++i) dx[i] = y[i] * (dy[i] - sum);
}

template <typename C>
using Table = absl::flat_hash_map<absl::string_view, RowActivation<C>>;

template <typename C>
Table<C> MakeTable() {
  namespace f = functions;
  return {{"linear", Each<Linear, C>()},
          {"relu", Each<ClampBelow, C>()},
          {"relu6", Each<ClampTo6, C>()},
          {"sigmoid", Each<f::Sigmoid, C>()},
          {"tanh", Each<f::Tanh, C>()},
          {"softplus", Each<f::Softplus, C>()},
          {"softsign", Each<f::Softsign, C>()},
          {"softmax", {Softmax<C>, SoftmaxGrad<C>}},
          {"log_softmax", {LogSoftmax<C>, LogSoftmaxGrad<C>}},
          {"gelu", Each<f::Gelu, C>()},
          {"gelu_approximate", Each<f::GeluTanh, C>()},
          {"elu", Each<Elu, C>()},
          {"selu", Each<Selu, C>()},
          {"silu", Each<Silu, C>()},
          {"leaky_relu", Each<LeakyRelu, C>()},
          {"hard_sigmoid", Each<HardSigmoid, C>()},
          {"exponential", Each<Exponential, C>()},
          {"mish", Each<Mish, C>()},
          {"celu", Each<Elu, C>()},
          {"hard_silu", Each<HardSilu, C>()},
          {"hard_tanh", Each<HardTanh, C>()},
          {"hard_shrink", Each<HardShrink, C>()},
          {"soft_shrink", Each<SoftShrink, C>()},
          {"tanh_shrink", Each<TanhShrink, C>()},
          {"log_sigmoid", Each<LogSigmoid, C>()},
          {"squareplus", Each<Squareplus, C>()},
          {"sparse_plus", Each<SparsePlus, C>()},
          {"sparse_sigmoid", Each<SparseSigmoid, C>()}};
}

}  // namespace

template <typename C>
RowActivation<C> FindRowActivation(absl::string_view name) {
  static const auto* const kTable = new Table<C>(MakeTable<C>());
  const auto found = kTable->find(name);
  return found == kTable->end() ? RowActivation<C>() : found->second;
}

template RowActivation<float> FindRowActivation<float>(absl::string_view);
template RowActivation<double> FindRowActivation<double>(absl::string_view);

}  // namespace muster
