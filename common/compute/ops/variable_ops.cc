#include "common/compute/ops/variable_ops.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/ops/apply.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

using internal::DTypeClass;
using internal::TypeError;
using internal::TypesOr;

// Returns the type of the node's variable.
absl::StatusOr<TensorType> VariableType(const TypeRuleArguments& arguments) {
  const Attributes& attributes = arguments.attributes;
  ASSIGN_OR_RETURN(const std::string name,
                   attributes.Get<std::string>(kVariableAttribute));
  if (name.empty()) return TypeError("the variable has no name");
  ASSIGN_OR_RETURN(const DType dtype, attributes.Get<DType>("dtype"));
  if (!IsFloating(dtype) && !IsInteger(dtype) && dtype != DType::kBool) {
    return TypeError("a variable cannot hold ", DTypeName(dtype));
  }
  ASSIGN_OR_RETURN(const Shape shape, attributes.Get<Shape>("shape"));
  ASSIGN_OR_RETURN(Shape checked,
                   Shape::Create(shape.dims(), /*allow_unknown=*/false));
  return TensorType{dtype, std::move(checked)};
}

TypesOr ReadRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const TensorType variable, VariableType(arguments));
  return std::vector<TensorType>{variable};
}

// Returns the type of rows `indices` of `variable`.
absl::StatusOr<TensorType> RowsType(const TensorType& variable,
                                    const Shape& indices) {
  if (variable.shape.rank() == 0) {
    return TypeError("a scalar variable has no rows");
  }
  std::vector<int64_t> dims(indices.dims().begin(), indices.dims().end());
  dims.insert(dims.end(), variable.shape.dims().begin() + 1,
              variable.shape.dims().end());
  ASSIGN_OR_RETURN(Shape shape, Shape::Create(dims, /*allow_unknown=*/true));
  return TensorType{variable.dtype, std::move(shape)};
}

TypesOr GatherVariableRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const TensorType variable, VariableType(arguments));
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kIndex, 0, 1));
  ASSIGN_OR_RETURN(TensorType rows,
                   RowsType(variable, arguments.inputs[0].shape));
  return std::vector<TensorType>{std::move(rows)};
}

absl::Status ExpectType(const TypeRuleArguments& arguments, int input,
                        const TensorType& expected) {
  const TensorType& type = arguments.inputs[input];
  if (type.dtype == expected.dtype &&
      type.shape.IsCompatibleWith(expected.shape)) {
    return absl::OkStatus();
  }
  return TypeError(
      "input ", input, " must be ", expected.ToString(), " for variable \"",
      arguments.attributes.GetOr<std::string>(kVariableAttribute, ""),
      "\", not ", type.ToString());
}

TypesOr AssignRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const TensorType variable, VariableType(arguments));
  RETURN_IF_ERROR(ExpectType(arguments, 0, variable));
  return std::vector<TensorType>{};
}

TypesOr UpdateRows(const TypeRuleArguments& arguments, int rows, int indices) {
  ASSIGN_OR_RETURN(const TensorType variable, VariableType(arguments));
  RETURN_IF_ERROR(
      ExpectClass(arguments, DTypeClass::kIndex, indices, indices + 1));
  RETURN_IF_ERROR(internal::ExpectRank(arguments, indices, 1, 1));
  ASSIGN_OR_RETURN(const TensorType expected,
                   RowsType(variable, arguments.inputs[indices].shape));
  RETURN_IF_ERROR(ExpectType(arguments, rows, expected));
  return std::vector<TensorType>{};
}

TypesOr ScatterRule(const TypeRuleArguments& arguments) {
  return UpdateRows(arguments, /*rows=*/1, /*indices=*/0);
}

TypesOr SparseGradientRule(const TypeRuleArguments& arguments) {
  return UpdateRows(arguments, /*rows=*/0, /*indices=*/1);
}

TypesOr WeightRule(const TypeRuleArguments& arguments) {
  const TensorType& weight = arguments.inputs[0];
  if (weight == TensorType{DType::kFloat32, {}}) {
    return std::vector<TensorType>{};
  }
  return TypeError("input 0 must be a float32 scalar, not ", weight.ToString());
}

Attributes AttributesOf(const VariableHandle& variable) {
  return {{std::string(kVariableAttribute), variable.name},
          {"dtype", variable.type.dtype},
          {"shape", variable.type.shape}};
}

void Update(absl::string_view op, const VariableHandle& variable,
            absl::Span<const Value> inputs) {
  internal::Apply(op, inputs, AttributesOf(variable));
}

void UpdateByGradient(absl::string_view op, const VariableHandle& variable,
                      absl::Span<const Value> inputs,
                      const GradientClipping& clipping,
                      absl::string_view loss_scale) {
  Attributes attributes = AttributesOf(variable);
  int limit_count = 0;
  for (const auto& [name, limit] :
       {std::pair<absl::string_view, double>{"clipvalue", clipping.clipvalue},
        {"clipnorm", clipping.clipnorm},
        {"global_clipnorm", clipping.global_clipnorm}}) {
    if (limit == 0) continue;
    if (!std::isfinite(limit) || limit < 0) {
      internal::ReportInvalidArgument(
          inputs, absl::StrCat(op, ": ", name, " is ", limit,
                               "; expected a finite number above 0"));
      return;
    }
    ++limit_count;
    attributes.Set(name, limit);
  }
  if (limit_count > 1) {
    internal::ReportInvalidArgument(
        inputs, absl::StrCat(op,
                             ": only one of clipvalue, clipnorm and "
                             "global_clipnorm can be set"));
    return;
  }
  if (clipping.global_clipnorm > 0 && clipping.norm_group != 0) {
    attributes.Set("norm_group", clipping.norm_group);
  }
  if (!loss_scale.empty()) {
    attributes.Set("loss_scale", std::string(loss_scale));
  }
  internal::Apply(op, inputs, std::move(attributes));
}

}  // namespace

Value ReadVariable(GraphBuilder& builder, const VariableHandle& variable) {
  return builder.Op("ReadVariable", {}, AttributesOf(variable));
}

Value GatherVariable(const VariableHandle& variable, Value indices) {
  return internal::Apply("GatherVariable", {indices}, AttributesOf(variable));
}

void AssignVariable(const VariableHandle& variable, Value value) {
  Update("AssignVariable", variable, {value});
}
void AssignAddVariable(const VariableHandle& variable, Value value) {
  Update("AssignAddVariable", variable, {value});
}
void AssignSubVariable(const VariableHandle& variable, Value value) {
  Update("AssignSubVariable", variable, {value});
}

void ScatterUpdateVariable(const VariableHandle& variable, Value indices,
                           Value rows) {
  Update("ScatterUpdateVariable", variable, {indices, rows});
}
void ScatterAddVariable(const VariableHandle& variable, Value indices,
                        Value rows) {
  Update("ScatterAddVariable", variable, {indices, rows});
}
void ScatterSubVariable(const VariableHandle& variable, Value indices,
                        Value rows) {
  Update("ScatterSubVariable", variable, {indices, rows});
}

void SetLossDenominator(Value weight) {
  if (!weight.ok()) return;
  for (const Node& node : weight.builder()->graph().nodes) {
    if (node.op == "SetLossDenominator" || node.op == "ApplyGradient" ||
        node.op == "ApplySparseGradient") {
      internal::ReportInvalidArgument(
          {weight},
          absl::StrCat(
              "SetLossDenominator comes after ", node.op, " \"", node.name,
              "\"; call it once, before the step applies the first gradient"));
      return;
    }
  }
  internal::Apply("SetLossDenominator", {weight});
}

void ApplyGradient(const VariableHandle& variable, Value gradient,
                   const GradientClipping& clipping,
                   absl::string_view loss_scale) {
  UpdateByGradient("ApplyGradient", variable, {gradient}, clipping, loss_scale);
}
void ApplySparseGradient(const VariableHandle& variable, Value values,
                         Value indices, const GradientClipping& clipping,
                         absl::string_view loss_scale) {
  UpdateByGradient("ApplySparseGradient", variable, {values, indices}, clipping,
                   loss_scale);
}

namespace internal {

void RegisterVariableOps(OpRegistry* registry) {
  const auto add = [registry](absl::string_view name, int input_count,
                              OpSchema::TypeRule type_rule, OpEffect effect) {
    registry->Register({.name = std::string(name),
                        .input_count_min = input_count,
                        .input_count_max = input_count,
                        .type_rule = type_rule,
                        .effect = effect});
  };
  add("ReadVariable", 0, ReadRule, OpEffect::kReadVariable);
  add("GatherVariable", 1, GatherVariableRule, OpEffect::kReadVariable);
  add("AssignVariable", 1, AssignRule, OpEffect::kUpdateVariable);
  add("AssignAddVariable", 1, AssignRule, OpEffect::kUpdateVariable);
  add("AssignSubVariable", 1, AssignRule, OpEffect::kUpdateVariable);
  add("ScatterUpdateVariable", 2, ScatterRule, OpEffect::kUpdateVariable);
  add("ScatterAddVariable", 2, ScatterRule, OpEffect::kUpdateVariable);
  add("ScatterSubVariable", 2, ScatterRule, OpEffect::kUpdateVariable);
  add("SetLossDenominator", 1, WeightRule, OpEffect::kDescribeStep);
  add("ApplyGradient", 1, AssignRule, OpEffect::kUpdateVariable);
  add("ApplySparseGradient", 2, SparseGradientRule, OpEffect::kUpdateVariable);
}

}  // namespace internal
}  // namespace muster
