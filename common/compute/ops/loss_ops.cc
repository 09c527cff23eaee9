#include "common/compute/ops/loss_ops.h"

#include <string>

#include "common/compute/ops/activation.h"
#include "common/compute/ops/apply.h"
#include "common/compute/ops/arithmetic.h"
#include "common/compute/ops/control.h"
#include "common/compute/ops/reduction.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/shape_ops.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

using internal::DTypeClass;
using internal::TypeError;
using internal::TypesOr;

Shape WithoutLastAxis(Shape shape) {
  shape.RemoveDim(shape.rank() - 1);
  return shape;
}

absl::StatusOr<Shape> DenseShape(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectSameClass(arguments, DTypeClass::kFloating, 0, 2));
  RETURN_IF_ERROR(internal::ExpectRank(arguments, 0, 1));
  return internal::MergeShapes(arguments.inputs[0].shape,
                               arguments.inputs[1].shape);
}

// Returns the shape of the logits, merged with the shape of the labels.
absl::StatusOr<Shape> SparseShape(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kFloating, 0, 1));
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kIndex, 1, 2));
  RETURN_IF_ERROR(internal::ExpectRank(arguments, 0, 1));
  const Shape& logits = arguments.inputs[0].shape;
  ASSIGN_OR_RETURN(Shape shape,
                   internal::MergeShapes(WithoutLastAxis(logits),
                                         arguments.inputs[1].shape));
  shape.AddDim(logits.dim(logits.rank() - 1));
  return shape;
}

using ShapeRule = absl::StatusOr<Shape> (*)(const TypeRuleArguments&);

template <ShapeRule kShapeRule>
TypesOr LossRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const Shape shape, kShapeRule(arguments));
  return internal::OneOutput(arguments.inputs[0].dtype, WithoutLastAxis(shape));
}

// (logits, labels, gradient of the loss) -> gradient of the logits
template <ShapeRule kShapeRule>
TypesOr LossGradRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(Shape shape, kShapeRule(arguments));
  const TensorType& gradient = arguments.inputs[2];
  if (gradient.dtype != arguments.inputs[0].dtype) {
    return TypeError("input 2 must be ", DTypeName(arguments.inputs[0].dtype),
                     ", not ", DTypeName(gradient.dtype));
  }
  const int64_t class_count = shape.dim(shape.rank() - 1);
  ASSIGN_OR_RETURN(
      shape, internal::MergeShapes(WithoutLastAxis(shape), gradient.shape));
  shape.AddDim(class_count);
  return internal::OneOutput(gradient.dtype, shape);
}

// A single op, so that one kernel subtracts and scales.
Value LogitsGradient(const GradientContext& context) {
  return internal::Apply(
      context.node.op + "Grad",
      {context.inputs[0], context.inputs[1], context.output_gradients[0]});
}

void SoftmaxCrossEntropyGradient(GradientContext& context) {
  context.input_gradients[0] = LogitsGradient(context);
  context.input_gradients[1] = ExpandDims(context.output_gradients[0], -1) *
                               -LogSoftmax(context.inputs[0]);
}

void SparseSoftmaxCrossEntropyGradient(GradientContext& context) {
  context.input_gradients[0] = LogitsGradient(context);
}

// The op computes d = g (p - labels) with p = softmax(logits).
void LossGradGradient(GradientContext& context) {
  const Value upstream = context.output_gradients[0];
  const Value logits = context.inputs[0];
  const Value labels = context.inputs[1];
  const Value loss_gradient = context.inputs[2];
  const Value p = Softmax(logits);
  const Value scaled = upstream * ExpandDims(loss_gradient, -1);
  context.input_gradients[0] =
      (scaled - Sum(scaled * p, {-1}, {.keep_dims = true})) * p;
  if (IsFloating(labels.dtype())) context.input_gradients[1] = -scaled;
  const Value per_unit = internal::Apply(
      context.node.op, {logits, labels, OnesLike(loss_gradient)});
  context.input_gradients[2] = Sum(upstream * per_unit, {-1});
}

void SigmoidCrossEntropyGradient(GradientContext& context) {
  const Value gradient = context.output_gradients[0];
  const Value logits = context.inputs[0];
  context.input_gradients[0] = gradient * (Sigmoid(logits) - context.inputs[1]);
  context.input_gradients[1] = -(gradient * logits);
}

}  // namespace

Value SoftmaxCrossEntropy(Value logits, Value labels) {
  return internal::Apply("SoftmaxCrossEntropy", {logits, labels});
}

Value SparseSoftmaxCrossEntropy(Value logits, Value labels) {
  return internal::Apply("SparseSoftmaxCrossEntropy", {logits, labels});
}

Value SigmoidCrossEntropy(Value logits, Value labels) {
  return internal::Apply("SigmoidCrossEntropy", {logits, labels});
}

namespace internal {

void RegisterLossOps(OpRegistry* registry) {
  const auto add = [registry](absl::string_view name, int input_count,
                              OpSchema::TypeRule type_rule,
                              OpSchema::GradientRule gradient_rule) {
    registry->Register({.name = std::string(name),
                        .input_count_min = input_count,
                        .input_count_max = input_count,
                        .type_rule = type_rule,
                        .gradient_rule = gradient_rule});
  };
  add("SoftmaxCrossEntropy", 2, LossRule<DenseShape>,
      SoftmaxCrossEntropyGradient);
  add("SoftmaxCrossEntropyGrad", 3, LossGradRule<DenseShape>, LossGradGradient);
  add("SparseSoftmaxCrossEntropy", 2, LossRule<SparseShape>,
      SparseSoftmaxCrossEntropyGradient);
  add("SparseSoftmaxCrossEntropyGrad", 3, LossGradRule<SparseShape>,
      LossGradGradient);
  registry->Register(ElementwiseOp("SigmoidCrossEntropy", 2, MergedFloatingRule,
                                   SigmoidCrossEntropyGradient,
                                   {.ranges = {{}, {0, 1}}}));
}

}  // namespace internal
}  // namespace muster
