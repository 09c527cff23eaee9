#include "common/compute/ops/pool_ops.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/compute/ops/apply.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/window.h"

namespace muster {
namespace {

using internal::TypesOr;

absl::StatusOr<std::vector<int64_t>> WindowOf(const Attributes& attributes) {
  ASSIGN_OR_RETURN(std::vector<int64_t> window,
                   attributes.Get<std::vector<int64_t>>("window"));
  if (window.size() != 2 || std::min(window[0], window[1]) < 1) {
    return internal::TypeError(
        "attribute \"window\" must hold a height and a width, both at least 1");
  }
  return window;
}

absl::StatusOr<Shape> PooledShape(const Attributes& attributes,
                                  const Shape& x) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> window, WindowOf(attributes));
  ASSIGN_OR_RETURN(WindowOptions options,
                   WindowOptions::FromAttributes(attributes));
  options.dilations = {1, 1};
  for (int side = 0; side < 4; ++side) {
    if (options.padding == PaddingKind::kExplicit &&
        options.explicit_padding[side] >= window[side / 2]) {
      return internal::TypeError(
          "a padding of ", options.explicit_padding[side],
          " must be narrower than the window of ", window[side / 2]);
    }
  }
  Shape shape = {x.dim(0)};
  for (const int axis : {0, 1}) {
    ASSIGN_OR_RETURN(
        const WindowAxis placed,
        PlaceWindows(options, axis, x.dim(axis + 1), window[axis]));
    shape.AddDim(placed.output_extent);
  }
  shape.AddDim(x.dim(3));
  return shape;
}

TypesOr PoolRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(internal::ExpectFloatingImages(arguments));
  ASSIGN_OR_RETURN(const Shape shape, PooledShape(arguments.attributes,
                                                  arguments.inputs[0].shape));
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

// The type rule of <op>Grad(gradient, x).
TypesOr PoolGradRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(internal::ExpectFloatingImages(arguments));
  const TensorType& x = arguments.inputs[1];
  ASSIGN_OR_RETURN(const Shape pooled,
                   PooledShape(arguments.attributes, x.shape));
  const Shape& gradient = arguments.inputs[0].shape;
  if (!gradient.IsCompatibleWith(pooled)) {
    return internal::TypeError("the gradient must have shape ",
                               pooled.ToString(), ", not ",
                               gradient.ToString());
  }
  return std::vector<TensorType>{x};
}

// The type rule of MaxPool2DSelect(values, x).
TypesOr MaxPoolSelectRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(internal::ExpectFloatingImages(arguments));
  ASSIGN_OR_RETURN(const Shape x,
                   internal::MergeShapes(arguments.inputs[0].shape,
                                         arguments.inputs[1].shape));
  ASSIGN_OR_RETURN(const Shape shape, PooledShape(arguments.attributes, x));
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

void PoolGradient(GradientContext& context) {
  context.input_gradients[0] =
      internal::Apply(context.node.op + "Grad",
                      {context.output_gradients[0], context.inputs[0]},
                      context.node.attributes);
}

// The position of the maximum is constant almost everywhere, so the derivative
// by x is zero. The derivative by the gradient selects the elements that
// received it.
void MaxPoolGradGradient(GradientContext& context) {
  context.input_gradients[0] = internal::Apply(
      "MaxPool2DSelect", {context.output_gradients[0], context.inputs[1]},
      context.node.attributes);
}

void MaxPoolSelectGradient(GradientContext& context) {
  context.input_gradients[0] = internal::Apply(
      "MaxPool2DGrad", {context.output_gradients[0], context.inputs[1]},
      context.node.attributes);
}

void AveragePoolGradGradient(GradientContext& context) {
  context.input_gradients[0] = internal::Apply(
      "AveragePool2D", {context.output_gradients[0]}, context.node.attributes);
}

Attributes AttributesOf(const Pool2DOptions& options) {
  Attributes attributes = internal::WindowAttributes(
      options.strides, /*dilations=*/{1, 1}, options.padding);
  attributes.Set("window", std::vector<int64_t>(options.window.begin(),
                                                options.window.end()));
  return attributes;
}

}  // namespace

Value MaxPool2D(Value x, const Pool2DOptions& options) {
  return internal::Apply("MaxPool2D", {x}, AttributesOf(options));
}

Value AveragePool2D(Value x, const Pool2DOptions& options) {
  return internal::Apply("AveragePool2D", {x}, AttributesOf(options));
}

namespace internal {

void RegisterPoolOps(OpRegistry* registry) {
  const auto add = [registry](const char* name, int input_count,
                              OpSchema::TypeRule type_rule,
                              OpSchema::GradientRule gradient_rule) {
    registry->Register({.name = name,
                        .input_count_min = input_count,
                        .input_count_max = input_count,
                        .type_rule = type_rule,
                        .gradient_rule = gradient_rule});
  };
  add("MaxPool2D", 1, PoolRule, PoolGradient);
  // MaxPool2DGrad(gradient, x) -> the gradient of x.
  add("MaxPool2DGrad", 2, PoolGradRule, MaxPoolGradGradient);
  // MaxPool2DSelect(values, x) -> for each window, the element of `values` at
  // the position of the maximum of x.
  add("MaxPool2DSelect", 2, MaxPoolSelectRule, MaxPoolSelectGradient);
  add("AveragePool2D", 1, PoolRule, PoolGradient);
  // AveragePool2DGrad(gradient, like) -> the gradient of x.
  registry->Register({.name = "AveragePool2DGrad",
                      .input_count_min = 2,
                      .input_count_max = 2,
                      .type_rule = PoolGradRule,
                      .gradient_rule = AveragePoolGradGradient,
                      .type_input = 1});
}

}  // namespace internal
}  // namespace muster
