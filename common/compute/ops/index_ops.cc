#include "common/compute/ops/index_ops.h"

#include <string>

#include "common/compute/ops/apply.h"
#include "common/compute/ops/register.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

using internal::DTypeClass;
using internal::TypeError;
using internal::TypesOr;

// Returns params[:axis] + indices + params[axis+1:].
absl::StatusOr<Shape> GatheredShape(const Shape& params, const Shape& indices,
                                    int axis) {
  std::vector<int64_t> dims;
  for (int i = 0; i < axis; ++i) dims.push_back(params.dim(i));
  for (const int64_t dim : indices.dims()) dims.push_back(dim);
  for (int i = axis + 1; i < params.rank(); ++i) dims.push_back(params.dim(i));
  return Shape::Create(dims, /*allow_unknown=*/true);
}

absl::StatusOr<int> OptionalAxis(const TypeRuleArguments& arguments, int rank) {
  ASSIGN_OR_RETURN(const int64_t axis, internal::OptionalAttribute<int64_t>(
                                           arguments.attributes, "axis", 0));
  return ResolveAxis(axis, rank, "attribute \"axis\"");
}

TypesOr GatherRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumberOrBool, 0, 1));
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kIndex, 1, 2));
  const TensorType& params = arguments.inputs[0];
  ASSIGN_OR_RETURN(const int axis,
                   OptionalAxis(arguments, params.shape.rank()));
  ASSIGN_OR_RETURN(
      const Shape shape,
      GatheredShape(params.shape, arguments.inputs[1].shape, axis));
  return internal::OneOutput(params.dtype, shape);
}

void GatherGradient(GradientContext& context) {
  context.input_gradients[0] = ScatterRowsLike(
      context.output_gradients[0], context.inputs[1], context.inputs[0],
      context.node.attributes.GetOr<int64_t>("axis", 0));
}

TypesOr ScatterRowsLikeRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumber, 0, 1));
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kIndex, 1, 2));
  const Shape& like = arguments.inputs[2].shape;
  ASSIGN_OR_RETURN(const int axis, OptionalAxis(arguments, like.rank()));
  ASSIGN_OR_RETURN(const Shape rows,
                   GatheredShape(like, arguments.inputs[1].shape, axis));
  if (!arguments.inputs[0].shape.IsCompatibleWith(rows)) {
    return TypeError("input 0 must have shape ", rows.ToString(), ", not ",
                     arguments.inputs[0].shape.ToString());
  }
  return internal::OneOutput(arguments.inputs[0].dtype, like);
}

void ScatterRowsLikeGradient(GradientContext& context) {
  context.input_gradients[0] =
      Gather(context.output_gradients[0], context.inputs[1],
             context.node.attributes.GetOr<int64_t>("axis", 0));
}

TypesOr OneHotRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kIndex, 0, 1));
  const Attributes& attributes = arguments.attributes;
  ASSIGN_OR_RETURN(const int64_t depth, attributes.Get<int64_t>("depth"));
  ASSIGN_OR_RETURN(const DType dtype, attributes.Get<DType>("dtype"));
  for (const char* name : {"on_value", "off_value"}) {
    RETURN_IF_ERROR(
        internal::OptionalAttribute<double>(attributes, name, 0).status());
  }
  if (depth < 0) {
    return TypeError("attribute \"depth\" must not be negative, but is ",
                     depth);
  }
  if (!IsFloating(dtype) && !IsInteger(dtype) && dtype != DType::kBool) {
    return TypeError("attribute \"dtype\" must be numbers or bool, not ",
                     DTypeName(dtype));
  }
  Shape shape = arguments.inputs[0].shape;
  shape.AddDim(depth);
  return internal::OneOutput(dtype, shape);
}

TypesOr InTopKRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kFloating, 0, 1));
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kIndex, 1, 2));
  RETURN_IF_ERROR(internal::ExpectRank(arguments, 0, 2, 2));
  RETURN_IF_ERROR(internal::ExpectRank(arguments, 1, 1, 1));
  RETURN_IF_ERROR(arguments.attributes.Get<int64_t>("k").status());
  ASSIGN_OR_RETURN(const int64_t batch,
                   internal::MergeExtents(arguments.inputs[0].shape.dim(0),
                                          arguments.inputs[1].shape.dim(0)));
  return internal::OneOutput(DType::kBool, {batch});
}

}  // namespace

Value Gather(Value params, Value indices, int64_t axis) {
  return internal::Apply("Gather", {params, indices}, {{"axis", axis}});
}

Value ScatterRowsLike(Value values, Value indices, Value like, int64_t axis) {
  return internal::Apply("ScatterRowsLike", {values, indices, like},
                         {{"axis", axis}});
}

Value OneHot(Value indices, int64_t depth, OneHotOptions options) {
  return internal::Apply("OneHot", {indices},
                         {{"depth", depth},
                          {"on_value", options.on_value},
                          {"off_value", options.off_value},
                          {"dtype", options.dtype}});
}

Value InTopK(Value predictions, Value targets, int64_t k) {
  return internal::Apply("InTopK", {predictions, targets}, {{"k", k}});
}

namespace internal {

void RegisterIndexOps(OpRegistry* registry) {
  registry->Register({.name = "Gather",
                      .input_count_min = 2,
                      .input_count_max = 2,
                      .type_rule = GatherRule,
                      .gradient_rule = GatherGradient,
                      .bfloat16 = Bfloat16Policy::kDirect});
  registry->Register({.name = "ScatterRowsLike",
                      .input_count_min = 3,
                      .input_count_max = 3,
                      .type_rule = ScatterRowsLikeRule,
                      .gradient_rule = ScatterRowsLikeGradient,
                      .golden_exemption = GoldenExemption::kGradientHelper});
  registry->Register({.name = "OneHot",
                      .input_count_min = 1,
                      .input_count_max = 1,
                      .type_rule = OneHotRule,
                      .bfloat16 = Bfloat16Policy::kDirect});
  registry->Register({.name = "InTopK",
                      .input_count_min = 2,
                      .input_count_max = 2,
                      .type_rule = InTopKRule});
}

}  // namespace internal
}  // namespace muster
