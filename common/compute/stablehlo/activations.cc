#include <cstdint>
#include <vector>

#include "common/compute/functions/activation_functions.h"
#include "common/compute/stablehlo/hlo_operators.h"
#include "common/compute/stablehlo/translations.h"

namespace muster {
namespace {

double AlphaOf(const HloNode& node) {
  return node.Attribute<double>("alpha", 0);
}

// The cumulative distribution function of a normal variable.
HloValue NormalCdf(const HloValue& x) {
  return Unary("chlo.erfc", -x * functions::kSqrtHalf) * 0.5;
}

HloValue Logistic(const HloValue& x) { return Unary("stablehlo.logistic", x); }

// (1 + tanh(u)) / 2 for the argument u of the approximation of GELU. The
// logistic function keeps the digits that 1 + tanh(u) loses where u is low.
HloValue ApproximateCdf(const HloValue& x) {
  return Logistic((x + x * x * x * functions::kGeluCubic) *
                  (2 * functions::kSqrtTwoOverPi));
}

std::vector<int64_t> LastAxis(const HloValue& x) { return {x.rank() - 1}; }

}  // namespace

HloValue ReluToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  const HloValue floored = Maximum(x, FilledLike(x, 0));
  if (node.op() == "Relu") return floored;
  return Binary("stablehlo.minimum", floored, FilledLike(x, 6));
}

HloValue ReluGradToHlo(const HloNode& node) {
  const HloValue& g = node.input(0);
  const HloValue& x = node.input(1);
  HloValue passes = Compare("GT", x, 0);
  if (node.op() == "Relu6Grad") {
    passes = Binary("stablehlo.and", passes, Compare("LT", x, 6));
  }
  return Select(passes, g, FilledLike(g, 0));
}

HloValue LeakyReluToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  return Select(Compare("GT", x, 0), x, x * AlphaOf(node));
}

HloValue LeakyReluGradToHlo(const HloNode& node) {
  const HloValue& g = node.input(0);
  return Select(Compare("GT", node.input(1), 0), g, g * AlphaOf(node));
}

HloValue EluToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  return Select(Compare("LT", x, 0),
                Unary("stablehlo.exponential_minus_one", x) * AlphaOf(node), x);
}

HloValue EluGradToHlo(const HloNode& node) {
  const HloValue& g = node.input(0);
  const HloValue& x = node.input(1);
  return Select(Compare("LT", x, 0), g * AlphaOf(node) * Exp(x), g);
}

HloValue SigmoidToHlo(const HloNode& node) { return Logistic(node.input(0)); }

HloValue SigmoidGradToHlo(const HloNode& node) {
  return node.input(0) * node.input(1) * (1.0 - node.input(1));
}

HloValue TanhGradToHlo(const HloNode& node) {
  return node.input(0) * (1.0 - node.input(1) * node.input(1));
}

HloValue SoftplusToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  return Maximum(x, FilledLike(x, 0)) + Log1p(Exp(-Abs(x)));
}

HloValue SoftsignToHlo(const HloNode& node) {
  return node.input(0) / (Abs(node.input(0)) + 1);
}

HloValue GeluToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  if (!node.Attribute("approximate", false)) return x * NormalCdf(x);
  return x * ApproximateCdf(x);
}

HloValue GeluGradToHlo(const HloNode& node) {
  const HloValue& g = node.input(0);
  const HloValue& x = node.input(1);
  if (!node.Attribute("approximate", false)) {
    const HloValue density = Exp(x * x * -0.5) * functions::kInvSqrtTwoPi;
    return g * (NormalCdf(x) + x * density);
  }
  const HloValue cdf = ApproximateCdf(x);
  const HloValue rest = cdf * (1.0 - cdf);
  const HloValue slope = (x * x * (3 * functions::kGeluCubic) + 1) *
                         (2 * functions::kSqrtTwoOverPi);
  // Where the function is flat, the square of x may overflow.
  return g * Select(Compare("EQ", rest, 0), cdf, cdf + x * rest * slope);
}

HloValue SoftmaxToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  const HloValue shifted =
      x - ReduceKeepingAxes(HloReduction::kMax, x, LastAxis(x));
  const HloValue exponentials = Exp(shifted);
  const HloValue sum =
      ReduceKeepingAxes(HloReduction::kSum, exponentials, LastAxis(x));
  return node.op() == "LogSoftmax" ? shifted - Log(sum) : exponentials / sum;
}

HloValue SoftmaxGradToHlo(const HloNode& node) {
  const HloValue& g = node.input(0);
  const HloValue& y = node.input(1);
  return (g - ReduceKeepingAxes(HloReduction::kSum, g * y, LastAxis(y))) * y;
}

}  // namespace muster
