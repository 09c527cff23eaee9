#include "common/compute/ops/comparison.h"

#include <vector>

#include "common/compute/ops/apply.h"
#include "common/compute/ops/broadcast_gradient.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

using internal::DTypeClass;
using internal::TypesOr;

TypesOr BroadcastToBool(const TypeRuleArguments& arguments, DTypeClass wanted) {
  RETURN_IF_ERROR(ExpectSameClass(arguments, wanted, 0, 2));
  ASSIGN_OR_RETURN(const Shape shape,
                   internal::BroadcastInputs(arguments.inputs));
  return internal::OneOutput(DType::kBool, shape);
}

TypesOr EqualityRule(const TypeRuleArguments& arguments) {
  return BroadcastToBool(arguments, DTypeClass::kNumberOrBool);
}

TypesOr OrderRule(const TypeRuleArguments& arguments) {
  return BroadcastToBool(arguments, DTypeClass::kNumber);
}

TypesOr LogicRule(const TypeRuleArguments& arguments) {
  return BroadcastToBool(arguments, DTypeClass::kBool);
}

TypesOr LogicalNotRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kBool, 0, 1));
  return std::vector<TensorType>{arguments.inputs[0]};
}

TypesOr SelectRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kBool, 0, 1));
  RETURN_IF_ERROR(ExpectSameClass(arguments, DTypeClass::kNumberOrBool, 1, 3));
  ASSIGN_OR_RETURN(const Shape shape,
                   internal::BroadcastInputs(arguments.inputs));
  return internal::OneOutput(arguments.inputs[1].dtype, shape);
}

void SelectGradient(GradientContext& context) {
  const Value gradient = context.output_gradients[0];
  const Value condition = context.inputs[0];
  const Value a = context.inputs[1];
  const Value b = context.inputs[2];
  const Value zero = ScalarLike(gradient, 0);
  context.input_gradients[1] = internal::Unbroadcast(
      Select(condition, gradient, zero), a, {condition, b});
  context.input_gradients[2] = internal::Unbroadcast(
      Select(condition, zero, gradient), b, {condition, a});
}

}  // namespace

Value Equal(Value a, Value b) { return internal::Apply("Equal", {a, b}); }
Value NotEqual(Value a, Value b) { return internal::Apply("NotEqual", {a, b}); }
Value Less(Value a, Value b) { return internal::Apply("Less", {a, b}); }
Value LessEqual(Value a, Value b) {
  return internal::Apply("LessEqual", {a, b});
}
Value Greater(Value a, Value b) { return internal::Apply("Greater", {a, b}); }
Value GreaterEqual(Value a, Value b) {
  return internal::Apply("GreaterEqual", {a, b});
}
Value LogicalAnd(Value a, Value b) {
  return internal::Apply("LogicalAnd", {a, b});
}
Value LogicalOr(Value a, Value b) {
  return internal::Apply("LogicalOr", {a, b});
}
Value LogicalNot(Value x) { return internal::Apply("LogicalNot", {x}); }

Value Select(Value condition, Value a, Value b) {
  return internal::Apply("Select", {condition, a, b});
}

namespace internal {

void RegisterComparisonOps(OpRegistry* registry) {
  const auto add = [registry](absl::string_view name, int input_count,
                              OpSchema::TypeRule type_rule,
                              OpSchema::GradientRule gradient_rule = nullptr) {
    registry->Register(
        ElementwiseOp(name, input_count, type_rule, gradient_rule));
  };
  add("Equal", 2, EqualityRule);
  add("NotEqual", 2, EqualityRule);
  add("Less", 2, OrderRule);
  add("LessEqual", 2, OrderRule);
  add("Greater", 2, OrderRule);
  add("GreaterEqual", 2, OrderRule);
  add("LogicalAnd", 2, LogicRule);
  add("LogicalOr", 2, LogicRule);
  add("LogicalNot", 1, LogicalNotRule);
  add("Select", 3, SelectRule, SelectGradient);
}

}  // namespace internal
}  // namespace muster
