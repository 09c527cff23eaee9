#include "common/compute/ops/activation.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/ops/apply.h"
#include "common/compute/ops/arithmetic.h"
#include "common/compute/ops/comparison.h"
#include "common/compute/ops/math_ops.h"
#include "common/compute/ops/reduction.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"
#include "common/core/tensor/attributes.h"

namespace muster {
namespace {

using internal::TypesOr;

// Every activation has an op for its gradient, so that one kernel computes it:
//   <op>Grad(gradient, x or y) -> gradient of x
// These ops have gradients for second derivatives.

Value GradientOp(const GradientContext& context, Value operand) {
  return internal::Apply(context.node.op + "Grad",
                         {context.output_gradients[0], operand},
                         context.node.attributes);
}

void GradientByInput(GradientContext& context) {
  context.input_gradients[0] = GradientOp(context, context.inputs[0]);
}

void GradientByOutput(GradientContext& context) {
  context.input_gradients[0] = GradientOp(context, context.outputs[0]);
}

// The second derivative is zero where it exists.
void PiecewiseLinearGradGradient(GradientContext& context) {
  context.input_gradients[0] = internal::Apply(
      context.node.op, {context.output_gradients[0], context.inputs[1]},
      context.node.attributes);
}

// d/dy of dy/dx = y (1 - y) is 1 - 2 y.
void SigmoidGradGradient(GradientContext& context) {
  const Value upstream = context.output_gradients[0];
  const Value y = context.inputs[1];
  context.input_gradients[0] = internal::Apply("SigmoidGrad", {upstream, y});
  context.input_gradients[1] = upstream * context.inputs[0] * (1 - 2 * y);
}

// d/dy of dy/dx = 1 - y^2 is -2 y.
void TanhGradGradient(GradientContext& context) {
  const Value upstream = context.output_gradients[0];
  const Value y = context.inputs[1];
  context.input_gradients[0] = internal::Apply("TanhGrad", {upstream, y});
  context.input_gradients[1] = upstream * context.inputs[0] * (-2 * y);
}

// dy/dx is its own derivative where x < 0, and constant elsewhere.
void EluGradGradient(GradientContext& context) {
  const Value upstream = context.output_gradients[0];
  const Value x = context.inputs[1];
  const Attributes& attributes = context.node.attributes;
  context.input_gradients[0] =
      internal::Apply("EluGrad", {upstream, x}, attributes);
  const Value curved =
      internal::Apply("EluGrad", {upstream * context.inputs[0], x}, attributes);
  context.input_gradients[1] = Select(x < 0, curved, ScalarLike(upstream, 0));
}

void SoftplusGradient(GradientContext& context) {
  context.input_gradients[0] =
      context.output_gradients[0] * Sigmoid(context.inputs[0]);
}

// dy/dx is 1 / (1 + |x|)^2.
void SoftsignGradient(GradientContext& context) {
  context.input_gradients[0] = context.output_gradients[0] *
                               Square(Reciprocal(1 + Abs(context.inputs[0])));
}

void SoftmaxGradient(GradientContext& context) {
  context.input_gradients[0] = internal::Apply(
      "SoftmaxGrad", {context.output_gradients[0], context.outputs[0]});
}

// The gradient of (gradient - sum(gradient * y)) * y.
void SoftmaxGradGradient(GradientContext& context) {
  const Value gradient = context.inputs[0];
  const Value y = context.inputs[1];
  const Value upstream = context.output_gradients[0];
  const auto sum = [](Value x) { return Sum(x, {-1}, {.keep_dims = true}); };
  context.input_gradients[0] = internal::Apply("SoftmaxGrad", {upstream, y});
  context.input_gradients[1] =
      upstream * (gradient - sum(gradient * y)) - gradient * sum(upstream * y);
}

void LogSoftmaxGradient(GradientContext& context) {
  const Value gradient = context.output_gradients[0];
  context.input_gradients[0] =
      gradient -
      Exp(context.outputs[0]) * Sum(gradient, {-1}, {.keep_dims = true});
}

TypesOr MergedNumberRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(
      ExpectSameClass(arguments, internal::DTypeClass::kNumber, 0, 2));
  ASSIGN_OR_RETURN(const Shape shape,
                   internal::MergeShapes(arguments.inputs[0].shape,
                                         arguments.inputs[1].shape));
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

TypesOr AlphaRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(arguments.attributes.Get<double>("alpha").status());
  return internal::MergedFloatingRule(arguments);
}

TypesOr GeluRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(
      internal::OptionalAttribute(arguments.attributes, "approximate", false)
          .status());
  return internal::MergedFloatingRule(arguments);
}

TypesOr SoftmaxGradRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(internal::ExpectRank(arguments, 0, 1));
  return internal::MergedFloatingRule(arguments);
}

TypesOr SoftmaxRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(internal::ExpectRank(arguments, 0, 1));
  return internal::SameFloatingRule(arguments);
}

}  // namespace

Value Relu(Value x) { return internal::Apply("Relu", {x}); }
Value Relu6(Value x) { return internal::Apply("Relu6", {x}); }
Value LeakyRelu(Value x, double alpha) {
  return internal::Apply("LeakyRelu", {x}, {{"alpha", alpha}});
}
Value Elu(Value x, double alpha) {
  return internal::Apply("Elu", {x}, {{"alpha", alpha}});
}
Value Sigmoid(Value x) { return internal::Apply("Sigmoid", {x}); }
Value Tanh(Value x) { return internal::Apply("Tanh", {x}); }
Value Softplus(Value x) { return internal::Apply("Softplus", {x}); }
Value Softsign(Value x) { return internal::Apply("Softsign", {x}); }
Value Gelu(Value x, GeluOptions options) {
  return internal::Apply("Gelu", {x}, {{"approximate", options.approximate}});
}
Value Softmax(Value x) { return internal::Apply("Softmax", {x}); }
Value LogSoftmax(Value x) { return internal::Apply("LogSoftmax", {x}); }

namespace internal {
namespace {

// Registers Relu or Relu6, and the op of its gradient.
void RegisterRelu(OpRegistry* registry, absl::string_view name,
                  OpSchema::ActivationName activation_name) {
  OpSchema relu = ElementwiseOp(name, 1, SameNumberRule, GradientByInput);
  relu.activation_name = activation_name;
  relu.gradient_by_either = absl::StrCat(name, "Grad");
  registry->Register(ElementwiseOp(relu.gradient_by_either, 2, MergedNumberRule,
                                   PiecewiseLinearGradGradient));
  registry->Register(std::move(relu));
}

// Registers Sigmoid or Tanh.
void RegisterSigmoid(OpRegistry* registry, absl::string_view name,
                     OpSchema::ActivationName activation_name) {
  OpSchema op = ElementwiseOp(name, 1, SameFloatingRule, GradientByOutput);
  op.activation_name = activation_name;
  registry->Register(std::move(op));
}

void RegisterGelu(OpRegistry* registry) {
  const OpSamples samples = {
      .attributes = {{{"approximate", false}}, {{"approximate", true}}}};
  OpSchema gelu = ElementwiseOp("Gelu", 1, GeluRule, GradientByInput, samples);
  gelu.activation_name = [](const Attributes& attributes) {
    const bool is_approximate = attributes.GetOr("approximate", false);
    return std::string(is_approximate ? "GeluTanh" : "Gelu");
  };
  registry->Register(std::move(gelu));
  OpSchema gradient = ElementwiseOp("GeluGrad", 2, GeluRule, nullptr, samples);
  gradient.gradient_refusal =
      "the gradient of Gelu cannot be differentiated again";
  registry->Register(std::move(gradient));
}

}  // namespace

void RegisterActivationOps(OpRegistry* registry) {
  const auto add =
      [registry](absl::string_view name, OpSchema::TypeRule type_rule,
                 OpSchema::GradientRule gradient_rule, OpSamples samples = {}) {
        registry->Register(ElementwiseOp(name, 1, type_rule, gradient_rule,
                                         std::move(samples)));
      };
  const auto add_gradient =
      [registry](absl::string_view name, OpSchema::TypeRule type_rule,
                 OpSchema::GradientRule gradient_rule, OpSamples samples = {}) {
        registry->Register(ElementwiseOp(name, 2, type_rule, gradient_rule,
                                         std::move(samples)));
      };
  const OpSamples alphas = {
      .attributes = {{{"alpha", 0.3}}, {{"alpha", 1.5}}, {{"alpha", -0.5}}}};
  RegisterRelu(registry, "Relu",
               [](const Attributes&) { return std::string("Relu"); });
  RegisterRelu(registry, "Relu6",
               [](const Attributes&) { return std::string("Relu6"); });
  add("LeakyRelu", AlphaRule, GradientByInput, alphas);
  add_gradient("LeakyReluGrad", AlphaRule, PiecewiseLinearGradGradient, alphas);
  add("Elu", AlphaRule, GradientByInput, alphas);
  add_gradient("EluGrad", AlphaRule, EluGradGradient, alphas);
  RegisterSigmoid(registry, "Sigmoid",
                  [](const Attributes&) { return std::string("Sigmoid"); });
  add_gradient("SigmoidGrad", MergedFloatingRule, SigmoidGradGradient,
               {.ranges = {{}, {0, 1}}});
  RegisterSigmoid(registry, "Tanh",
                  [](const Attributes&) { return std::string("Tanh"); });
  add_gradient("TanhGrad", MergedFloatingRule, TanhGradGradient,
               {.ranges = {{}, {-1, 1}}});
  RegisterGelu(registry);
  add("Softplus", SameFloatingRule, SoftplusGradient);
  add("Softsign", SameFloatingRule, SoftsignGradient);
  registry->Register({.name = "Softmax",
                      .input_count_min = 1,
                      .input_count_max = 1,
                      .type_rule = SoftmaxRule,
                      .gradient_rule = SoftmaxGradient});
  // (gradient, y) -> the gradient of x.
  registry->Register({.name = "SoftmaxGrad",
                      .input_count_min = 2,
                      .input_count_max = 2,
                      .type_rule = SoftmaxGradRule,
                      .gradient_rule = SoftmaxGradGradient,
                      .samples = {.ranges = {{}, {0, 1}}},
                      .golden_exemption = GoldenExemption::kGradientHelper});
  registry->Register({.name = "LogSoftmax",
                      .input_count_min = 1,
                      .input_count_max = 1,
                      .type_rule = SoftmaxRule,
                      .gradient_rule = LogSoftmaxGradient});
}

}  // namespace internal
}  // namespace muster
