#include "common/compute/ops/reduction.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "common/compute/ops/apply.h"
#include "common/compute/ops/arithmetic.h"
#include "common/compute/ops/comparison.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/shape_ops.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

using internal::DTypeClass;
using internal::TypesOr;

// Returns `shape` without `axes`, or with extent 1 there.
Shape ReducedShape(Shape shape, const std::vector<int>& axes, bool keep_dims) {
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (keep_dims) {
      shape.set_dim(*axis, 1);
    } else {
      shape.RemoveDim(*axis);
    }
  }
  return shape;
}

TypesOr ReduceRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumber, 0, 1));
  const TensorType& input = arguments.inputs[0];
  ASSIGN_OR_RETURN(
      const std::vector<int> axes,
      internal::AxesAttribute(arguments, "axes", input.shape.rank()));
  ASSIGN_OR_RETURN(
      const bool keep_dims,
      internal::OptionalAttribute(arguments.attributes, "keep_dims", false));
  return internal::OneOutput(input.dtype,
                             ReducedShape(input.shape, axes, keep_dims));
}

TypesOr ArgRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumber, 0, 1));
  Shape shape = arguments.inputs[0].shape;
  ASSIGN_OR_RETURN(const int axis,
                   internal::AxisAttribute(arguments, "axis", shape.rank()));
  if (shape.dim(axis) == 0) {
    return internal::TypeError("axis ", axis, " is empty");
  }
  shape.RemoveDim(axis);
  return internal::OneOutput(DType::kInt64, shape);
}

TypesOr CountAlongRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(internal::AxesAttribute(arguments, "axes",
                                          arguments.inputs[0].shape.rank())
                      .status());
  return std::vector<TensorType>{{DType::kFloat32, {}}};
}

// Returns the reduced axes of `node`, whose input has `rank` dimensions.
std::vector<int64_t> ReducedAxes(const Node& node, int rank) {
  auto axes = node.attributes.GetOr<std::vector<int64_t>>("axes", {});
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  return axes;
}

// Returns `reduced`, the output of the node or its gradient, with extent 1
// along the reduced axes, so that it broadcasts against the input.
Value WithReducedAxes(const GradientContext& context, Value reduced) {
  if (context.node.attributes.GetOr("keep_dims", false)) return reduced;
  const std::vector<int64_t> axes =
      ReducedAxes(context.node, context.inputs[0].shape().rank());
  // Leading axes broadcast without a reshape.
  if (axes.empty() || axes.back() + 1 == static_cast<int64_t>(axes.size())) {
    return reduced;
  }
  for (const int64_t axis : axes) reduced = ExpandDims(reduced, axis);
  return reduced;
}

void SumGradient(GradientContext& context) {
  context.input_gradients[0] = BroadcastLike(
      WithReducedAxes(context, context.output_gradients[0]), context.inputs[0]);
}

void MeanGradient(GradientContext& context) {
  const Value x = context.inputs[0];
  const Value gradient = context.output_gradients[0];
  const std::vector<int64_t> axes = ReducedAxes(context.node, x.shape().rank());
  double count = 1;
  for (const int64_t axis : axes) {
    const int64_t extent = x.shape().dim(static_cast<int>(axis));
    // The product with an unknown extent is unknown: NaN.
    count *= extent == Shape::kUnknown ? std::nan("") : extent;
  }
  const Value divided =
      std::isnan(count) ? gradient / Cast(CountAlong(x, axes), gradient.dtype())
                        : gradient / count;
  context.input_gradients[0] =
      BroadcastLike(WithReducedAxes(context, divided), x);
}

// Max and Min: elements that equal the result share its gradient.
void ExtremumGradient(GradientContext& context) {
  const Value x = context.inputs[0];
  const std::vector<int64_t> axes = ReducedAxes(context.node, x.shape().rank());
  const Value is_chosen =
      Cast(Equal(x, WithReducedAxes(context, context.outputs[0])), x.dtype());
  const Value chosen_count = Sum(is_chosen, axes, {.keep_dims = true});
  const Value gradient = WithReducedAxes(context, context.output_gradients[0]);
  context.input_gradients[0] = is_chosen / chosen_count * gradient;
}

void ProdGradient(GradientContext& context) {
  const Value x = context.inputs[0];
  const Value products_of_others =
      internal::Apply("ProdOfOthers", {x},
                      {{"axes", ReducedAxes(context.node, x.shape().rank())}});
  context.input_gradients[0] =
      products_of_others *
      WithReducedAxes(context, context.output_gradients[0]);
}

TypesOr ProdOfOthersRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kFloating, 0, 1));
  RETURN_IF_ERROR(internal::AxesAttribute(arguments, "axes",
                                          arguments.inputs[0].shape.rank())
                      .status());
  return std::vector<TensorType>{arguments.inputs[0]};
}

Value Reduce(absl::string_view op, Value x, std::vector<int64_t> axes,
             ReduceOptions options) {
  return internal::Apply(
      op, {x}, {{"axes", std::move(axes)}, {"keep_dims", options.keep_dims}});
}

std::vector<int64_t> AllAxes(Value x) {
  std::vector<int64_t> axes(x.shape().rank());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

}  // namespace

Value Sum(Value x, std::vector<int64_t> axes, ReduceOptions options) {
  return Reduce("Sum", x, std::move(axes), options);
}
Value Sum(Value x) { return Sum(x, AllAxes(x)); }

Value Mean(Value x, std::vector<int64_t> axes, ReduceOptions options) {
  return Reduce("Mean", x, std::move(axes), options);
}
Value Mean(Value x) { return Mean(x, AllAxes(x)); }

Value Max(Value x, std::vector<int64_t> axes, ReduceOptions options) {
  return Reduce("Max", x, std::move(axes), options);
}
Value Max(Value x) { return Max(x, AllAxes(x)); }

Value Min(Value x, std::vector<int64_t> axes, ReduceOptions options) {
  return Reduce("Min", x, std::move(axes), options);
}
Value Min(Value x) { return Min(x, AllAxes(x)); }

Value Prod(Value x, std::vector<int64_t> axes, ReduceOptions options) {
  return Reduce("Prod", x, std::move(axes), options);
}
Value Prod(Value x) { return Prod(x, AllAxes(x)); }

Value ArgMax(Value x, int64_t axis) {
  return internal::Apply("ArgMax", {x}, {{"axis", axis}});
}

Value ArgMin(Value x, int64_t axis) {
  return internal::Apply("ArgMin", {x}, {{"axis", axis}});
}

Value CountAlong(Value x, std::vector<int64_t> axes) {
  return internal::Apply("CountAlong", {x}, {{"axes", std::move(axes)}});
}

namespace internal {

void RegisterReductionOps(OpRegistry* registry) {
  const auto add = [registry](absl::string_view name,
                              OpSchema::TypeRule type_rule,
                              OpSchema::GradientRule gradient_rule) {
    registry->Register({.name = std::string(name),
                        .input_count_min = 1,
                        .input_count_max = 1,
                        .type_rule = type_rule,
                        .gradient_rule = gradient_rule});
  };
  add("Sum", ReduceRule, SumGradient);
  add("Mean", ReduceRule, MeanGradient);
  add("Max", ReduceRule, ExtremumGradient);
  add("Min", ReduceRule, ExtremumGradient);
  add("Prod", ReduceRule, ProdGradient);
  // Element i is the product of all other elements along the axes: the
  // derivative of Prod. Avoids a division, which would fail for elements of 0.
  registry->Register(
      {.name = "ProdOfOthers",
       .input_count_min = 1,
       .input_count_max = 1,
       .type_rule = ProdOfOthersRule,
       .gradient_refusal =
           "the gradient of Prod cannot be differentiated again; "
           "write the product as Exp(Sum(Log(x)))",
       .golden_exemption = GoldenExemption::kGradientHelper});
  add("ArgMax", ArgRule, nullptr);
  add("ArgMin", ArgRule, nullptr);
  registry->Register({.name = "CountAlong",
                      .input_count_min = 1,
                      .input_count_max = 1,
                      .type_rule = CountAlongRule,
                      .golden_exemption = GoldenExemption::kGradientHelper});
}

}  // namespace internal
}  // namespace muster
