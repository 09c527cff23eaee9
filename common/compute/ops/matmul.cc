#include "common/compute/ops/matmul.h"

#include "common/compute/ops/apply.h"
#include "common/compute/ops/broadcast_gradient.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/shape_ops.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

using internal::TypesOr;

// Returns the axes before the last two.
Shape BatchShape(const Shape& shape) {
  return Shape(shape.dims().first(shape.rank() - 2));
}

TypesOr MatMulRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(
      ExpectSameClass(arguments, internal::DTypeClass::kNumber, 0, 2));
  RETURN_IF_ERROR(internal::ExpectRank(arguments, 0, 2));
  RETURN_IF_ERROR(internal::ExpectRank(arguments, 1, 2));
  ASSIGN_OR_RETURN(
      const bool transpose_a,
      internal::OptionalAttribute(arguments.attributes, "transpose_a", false));
  ASSIGN_OR_RETURN(
      const bool transpose_b,
      internal::OptionalAttribute(arguments.attributes, "transpose_b", false));
  const Shape& a = arguments.inputs[0].shape;
  const Shape& b = arguments.inputs[1].shape;
  const int64_t inner_a = a.dim(a.rank() - (transpose_a ? 2 : 1));
  const int64_t inner_b = b.dim(b.rank() - (transpose_b ? 1 : 2));
  if (!internal::MergeExtents(inner_a, inner_b).ok()) {
    return internal::TypeError("the inner extents, ", inner_a, " of input 0 ",
                               "and ", inner_b, " of input 1, must be equal");
  }
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(BatchShape(a), BatchShape(b)));
  shape.AddDim(a.dim(a.rank() - (transpose_a ? 1 : 2)));
  shape.AddDim(b.dim(b.rank() - (transpose_b ? 2 : 1)));
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

// Returns `gradient` summed over the axes along which `operand` was broadcast.
Value SumOverBatch(Value gradient, Value operand, Value other) {
  if (!gradient.ok() || !internal::MayGrow(BatchShape(operand.shape()),
                                           BatchShape(other.shape()))) {
    return gradient;
  }
  return SumLike(gradient, operand);
}

Value AsMatrix(Value x) { return Reshape(x, {-1, x.shape().dims().back()}); }

// Returns the gradient of the matrix by which all matrices of `a` were
// multiplied, computed as one product.
Value SharedMatrixGradient(Value a, Value gradient, bool is_transposed) {
  const Value rows = AsMatrix(a);
  const Value gradients = AsMatrix(gradient);
  return is_transposed ? MatMul(gradients, rows, {.transpose_a = true})
                       : MatMul(rows, gradients, {.transpose_a = true});
}

bool HasKnownColumns(Value x) {
  return x.ok() && x.shape().dims().back() != Shape::kUnknown;
}

void MatMulGradient(GradientContext& context) {
  const Value gradient = context.output_gradients[0];
  const Value a = context.inputs[0];
  const Value b = context.inputs[1];
  const bool ta = context.node.attributes.GetOr("transpose_a", false);
  const bool tb = context.node.attributes.GetOr("transpose_b", false);
  // With the operands A and B as multiplied and the gradient G of A B, the
  // gradients of A and B are G B' and A' G. A transposed operand needs the
  // transposed gradient.
  const Value gradient_a =
      ta ? MatMul(b, gradient, {.transpose_a = tb, .transpose_b = true})
         : MatMul(gradient, b, {.transpose_b = !tb});
  context.input_gradients[0] = SumOverBatch(gradient_a, a, b);
  if (a.shape().rank() > 2 && b.shape().rank() == 2 && !ta &&
      HasKnownColumns(a) && HasKnownColumns(gradient)) {
    context.input_gradients[1] = SharedMatrixGradient(a, gradient, tb);
    return;
  }
  const Value gradient_b =
      tb ? MatMul(gradient, a, {.transpose_a = true, .transpose_b = ta})
         : MatMul(a, gradient, {.transpose_a = !ta});
  context.input_gradients[1] = SumOverBatch(gradient_b, b, a);
}

}  // namespace

Value MatMul(Value a, Value b, MatMulOptions options) {
  return internal::Apply("MatMul", {a, b},
                         {{"transpose_a", options.transpose_a},
                          {"transpose_b", options.transpose_b}});
}

namespace internal {

void RegisterMatMulOps(OpRegistry* registry) {
  registry->Register({.name = "MatMul",
                      .input_count_min = 2,
                      .input_count_max = 2,
                      .type_rule = MatMulRule,
                      .gradient_rule = MatMulGradient});
}

}  // namespace internal
}  // namespace muster
