#include "common/compute/ops/math_ops.h"

#include <utility>
#include <vector>

#include "common/compute/ops/apply.h"
#include "common/compute/ops/arithmetic.h"
#include "common/compute/ops/broadcast_gradient.h"
#include "common/compute/ops/comparison.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

constexpr double kTwoOverSqrtPi = 1.1283791670955125739;

void PowGradient(GradientContext& context) {
  const Value gradient = context.output_gradients[0];
  const Value base = context.inputs[0];
  const Value exponent = context.inputs[1];
  const Value gradient_base = gradient * exponent * Pow(base, exponent - 1);
  // Where the base is not positive the logarithm is not used, but NaN would
  // survive multiplication by 0.
  const Value is_positive = base > 0;
  const Value logarithm =
      Select(is_positive, Log(Select(is_positive, base, OnesLike(base))),
             ZerosLike(base));
  const Value gradient_exponent = gradient * context.outputs[0] * logarithm;
  context.input_gradients[0] =
      internal::Unbroadcast(gradient_base, base, {exponent});
  context.input_gradients[1] =
      internal::Unbroadcast(gradient_exponent, exponent, {base});
}

// All rules below have the form gradient(dy, x, y) for y = f(x).
template <Value (*kRule)(Value gradient, Value x, Value y)>
void UnaryGradient(GradientContext& context) {
  context.input_gradients[0] =
      kRule(context.output_gradients[0], context.inputs[0], context.outputs[0]);
}

Value SquareRule(Value gradient, Value x, Value) { return gradient * (2 * x); }
Value SqrtRule(Value gradient, Value, Value y) { return 0.5 * gradient / y; }
Value RsqrtRule(Value gradient, Value, Value y) {
  return -0.5 * gradient * (y * y * y);
}
Value ReciprocalRule(Value gradient, Value, Value y) {
  return -(gradient * (y * y));
}
Value ExpRule(Value gradient, Value, Value y) { return gradient * y; }
Value Expm1Rule(Value gradient, Value x, Value) { return gradient * Exp(x); }
Value LogRule(Value gradient, Value x, Value) { return gradient / x; }
Value Log1pRule(Value gradient, Value x, Value) { return gradient / (1 + x); }
Value SinRule(Value gradient, Value x, Value) { return gradient * Cos(x); }
Value CosRule(Value gradient, Value x, Value) { return -(gradient * Sin(x)); }
Value ErfRule(Value gradient, Value x, Value) {
  return gradient * (kTwoOverSqrtPi * Exp(-Square(x)));
}

internal::TypesOr TestRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(
      ExpectClass(arguments, internal::DTypeClass::kFloating, 0, 1));
  return std::vector<TensorType>{{DType::kBool, arguments.inputs[0].shape}};
}

}  // namespace

Value Pow(Value base, Value exponent) {
  return internal::Apply("Pow", {base, exponent});
}
Value Square(Value x) { return internal::Apply("Square", {x}); }
Value Sqrt(Value x) { return internal::Apply("Sqrt", {x}); }
Value Rsqrt(Value x) { return internal::Apply("Rsqrt", {x}); }
Value Reciprocal(Value x) { return internal::Apply("Reciprocal", {x}); }
Value Exp(Value x) { return internal::Apply("Exp", {x}); }
Value Expm1(Value x) { return internal::Apply("Expm1", {x}); }
Value Log(Value x) { return internal::Apply("Log", {x}); }
Value Log1p(Value x) { return internal::Apply("Log1p", {x}); }
Value Sin(Value x) { return internal::Apply("Sin", {x}); }
Value Cos(Value x) { return internal::Apply("Cos", {x}); }
Value Erf(Value x) { return internal::Apply("Erf", {x}); }
Value Floor(Value x) { return internal::Apply("Floor", {x}); }
Value Ceil(Value x) { return internal::Apply("Ceil", {x}); }
Value Round(Value x) { return internal::Apply("Round", {x}); }
Value IsNan(Value x) { return internal::Apply("IsNan", {x}); }
Value IsFinite(Value x) { return internal::Apply("IsFinite", {x}); }

namespace internal {

void RegisterMathOps(OpRegistry* registry) {
  const auto add = [registry](absl::string_view name,
                              OpSchema::GradientRule gradient_rule,
                              OpSchema::TypeRule type_rule = SameFloatingRule,
                              OpSamples samples = {}) {
    registry->Register(
        ElementwiseOp(name, 1, type_rule, gradient_rule, std::move(samples)));
  };
  const OpSamples positive = {.ranges = {{0.25, 20}}};
  registry->Register(ElementwiseOp("Pow", 2, BroadcastNumberRule, PowGradient,
                                   {.ranges = {{1, 3}, {1, 3}}}));
  add("Square", UnaryGradient<SquareRule>, SameNumberRule);
  add("Sqrt", UnaryGradient<SqrtRule>, SameFloatingRule, positive);
  add("Rsqrt", UnaryGradient<RsqrtRule>, SameFloatingRule, positive);
  add("Reciprocal", UnaryGradient<ReciprocalRule>, SameFloatingRule, positive);
  add("Exp", UnaryGradient<ExpRule>);
  add("Expm1", UnaryGradient<Expm1Rule>);
  add("Log", UnaryGradient<LogRule>, SameFloatingRule, positive);
  add("Log1p", UnaryGradient<Log1pRule>, SameFloatingRule,
      {.ranges = {{-0.5, 20}}});
  add("Sin", UnaryGradient<SinRule>);
  add("Cos", UnaryGradient<CosRule>);
  add("Erf", UnaryGradient<ErfRule>);
  add("Floor", nullptr);
  add("Ceil", nullptr);
  add("Round", nullptr);
  add("IsNan", nullptr, TestRule);
  add("IsFinite", nullptr, TestRule);
}

}  // namespace internal
}  // namespace muster
