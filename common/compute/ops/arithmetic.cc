#include "common/compute/ops/arithmetic.h"

#include <utility>

#include "common/compute/ops/apply.h"
#include "common/compute/ops/broadcast_gradient.h"
#include "common/compute/ops/comparison.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

// Sets the gradients of two operands that were broadcast.
void SetGradients(GradientContext& context, Value gradient_a,
                  Value gradient_b) {
  const Value a = context.inputs[0];
  const Value b = context.inputs[1];
  context.input_gradients[0] = internal::Unbroadcast(gradient_a, a, {b});
  context.input_gradients[1] = internal::Unbroadcast(gradient_b, b, {a});
}

void AddGradient(GradientContext& context) {
  const Value gradient = context.output_gradients[0];
  SetGradients(context, gradient, gradient);
}

void SubGradient(GradientContext& context) {
  const Value gradient = context.output_gradients[0];
  SetGradients(context, gradient, -gradient);
}

void MulGradient(GradientContext& context) {
  const Value gradient = context.output_gradients[0];
  SetGradients(context, gradient * context.inputs[1],
               gradient * context.inputs[0]);
}

void DivGradient(GradientContext& context) {
  const Value gradient_a = context.output_gradients[0] / context.inputs[1];
  SetGradients(context, gradient_a, -(gradient_a * context.outputs[0]));
}

void ModGradient(GradientContext& context) {
  const Value gradient = context.output_gradients[0];
  SetGradients(context, gradient,
               -(gradient * FloorDiv(context.inputs[0], context.inputs[1])));
}

// Passes the gradient to `a` where `a_wins`, else to `b`.
void ChoiceGradient(GradientContext& context, Value a_wins) {
  const Value gradient = context.output_gradients[0];
  const Value zero = ScalarLike(gradient, 0);
  SetGradients(context, Select(a_wins, gradient, zero),
               Select(a_wins, zero, gradient));
}

void MaximumGradient(GradientContext& context) {
  ChoiceGradient(context, context.inputs[0] >= context.inputs[1]);
}

void MinimumGradient(GradientContext& context) {
  ChoiceGradient(context, context.inputs[0] <= context.inputs[1]);
}

void SquaredDifferenceGradient(GradientContext& context) {
  const Value gradient = context.output_gradients[0] *
                         (2 * (context.inputs[0] - context.inputs[1]));
  SetGradients(context, gradient, -gradient);
}

void NegGradient(GradientContext& context) {
  context.input_gradients[0] = -context.output_gradients[0];
}

void AbsGradient(GradientContext& context) {
  context.input_gradients[0] =
      context.output_gradients[0] * Sign(context.inputs[0]);
}

}  // namespace

Value Add(Value a, Value b) { return internal::Apply("Add", {a, b}); }
Value Sub(Value a, Value b) { return internal::Apply("Sub", {a, b}); }
Value Mul(Value a, Value b) { return internal::Apply("Mul", {a, b}); }
Value Div(Value a, Value b) { return internal::Apply("Div", {a, b}); }
Value FloorDiv(Value a, Value b) { return internal::Apply("FloorDiv", {a, b}); }
Value Mod(Value a, Value b) { return internal::Apply("Mod", {a, b}); }
Value Maximum(Value a, Value b) { return internal::Apply("Maximum", {a, b}); }
Value Minimum(Value a, Value b) { return internal::Apply("Minimum", {a, b}); }
Value SquaredDifference(Value a, Value b) {
  return internal::Apply("SquaredDifference", {a, b});
}

Value Neg(Value x) { return internal::Apply("Neg", {x}); }
Value Abs(Value x) { return internal::Apply("Abs", {x}); }
Value Sign(Value x) { return internal::Apply("Sign", {x}); }

namespace internal {

void RegisterArithmeticOps(OpRegistry* registry) {
  const auto add = [registry](absl::string_view name, int input_count,
                              OpSchema::TypeRule type_rule,
                              OpSchema::GradientRule gradient_rule,
                              OpSamples samples = {}) {
    registry->Register(ElementwiseOp(name, input_count, type_rule,
                                     gradient_rule, std::move(samples)));
  };
  const OpSamples divisors = {.ranges = {{}, {1, 9}}};
  add("Add", 2, BroadcastNumberRule, AddGradient);
  add("Sub", 2, BroadcastNumberRule, SubGradient);
  add("Mul", 2, BroadcastNumberRule, MulGradient);
  add("Div", 2, BroadcastNumberRule, DivGradient, divisors);
  add("FloorDiv", 2, BroadcastNumberRule, nullptr, divisors);
  add("Mod", 2, BroadcastNumberRule, ModGradient, divisors);
  add("Maximum", 2, BroadcastNumberRule, MaximumGradient);
  add("Minimum", 2, BroadcastNumberRule, MinimumGradient);
  add("SquaredDifference", 2, BroadcastNumberRule, SquaredDifferenceGradient);
  add("Neg", 1, SameNumberRule, NegGradient);
  add("Abs", 1, SameNumberRule, AbsGradient);
  add("Sign", 1, SameNumberRule, nullptr);
}

}  // namespace internal
}  // namespace muster
