#include "common/compute/ops/sort_ops.h"

#include <cstdint>
#include <vector>

#include "common/compute/ops/apply.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

using internal::DTypeClass;
using internal::TypeError;
using internal::TypesOr;

// TopK(x){k, smallest} -> values, indices
TypesOr TopKRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumber, 0, 1));
  RETURN_IF_ERROR(internal::ExpectRank(arguments, 0, 1));
  ASSIGN_OR_RETURN(const int64_t k, arguments.attributes.Get<int64_t>("k"));
  RETURN_IF_ERROR(arguments.attributes.Get<bool>("smallest").status());
  TensorType values = arguments.inputs[0];
  const int last = values.shape.rank() - 1;
  const int64_t extent = values.shape.dim(last);
  if (k < 0 || (extent != Shape::kUnknown && k > extent)) {
    return TypeError("attribute \"k\" is ", k,
                     "; expected 0 to the last extent of ",
                     values.shape.ToString());
  }
  values.shape.set_dim(last, k);
  RETURN_IF_ERROR(internal::OneOutput(values.dtype, values.shape).status());
  return std::vector<TensorType>{values, {DType::kInt32, values.shape}};
}

void TopKGradient(GradientContext& context) {
  if (!context.output_gradients[0].ok()) return;
  context.input_gradients[0] = AddAlongRowsLike(
      context.output_gradients[0], context.outputs[1], context.inputs[0]);
}

// Checks that `indices` has the rows of `x`, and returns its shape.
absl::StatusOr<Shape> ShapeAlongRows(const TypeRuleArguments& arguments, int x,
                                     int indices) {
  RETURN_IF_ERROR(
      ExpectClass(arguments, DTypeClass::kIndex, indices, indices + 1));
  RETURN_IF_ERROR(internal::ExpectRank(arguments, x, 1));
  const Shape& rows = arguments.inputs[x].shape;
  Shape shape = arguments.inputs[indices].shape;
  RETURN_IF_ERROR(
      internal::ExpectRank(arguments, indices, rows.rank(), rows.rank()));
  for (int axis = 0; axis + 1 < rows.rank(); ++axis) {
    ASSIGN_OR_RETURN(const int64_t extent,
                     internal::MergeExtents(rows.dim(axis), shape.dim(axis)));
    shape.set_dim(axis, extent);
  }
  return shape;
}

TypesOr TakeAlongRowsRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumber, 0, 1));
  ASSIGN_OR_RETURN(const Shape shape, ShapeAlongRows(arguments, 0, 1));
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

void TakeAlongRowsGradient(GradientContext& context) {
  context.input_gradients[0] = AddAlongRowsLike(
      context.output_gradients[0], context.inputs[1], context.inputs[0]);
}

TypesOr AddAlongRowsLikeRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumber, 0, 1));
  ASSIGN_OR_RETURN(const Shape shape, ShapeAlongRows(arguments, 2, 1));
  RETURN_IF_ERROR(
      internal::MergeShapes(shape, arguments.inputs[0].shape).status());
  return internal::OneOutput(arguments.inputs[0].dtype,
                             arguments.inputs[2].shape);
}

void AddAlongRowsLikeGradient(GradientContext& context) {
  context.input_gradients[0] =
      TakeAlongRows(context.output_gradients[0], context.inputs[1]);
}

TopKOutputs Ordered(Value x, int64_t k, bool smallest) {
  const std::vector<Value> outputs = internal::ApplyWithOutputs(
      "TopK", {x}, {{"k", k}, {"smallest", smallest}}, 2);
  return {outputs[0], outputs[1]};
}

TopKOutputs OrderAll(Value x, const SortOptions& options) {
  const int rank = x.ok() ? x.shape().rank() : 0;
  if (rank == 0 || x.shape().dim(rank - 1) == Shape::kUnknown) {
    const Value mistake = internal::ReportInvalidArgument(
        {x}, "Sort needs a last axis whose extent is known");
    return {mistake, mistake};
  }
  return Ordered(x, x.shape().dim(rank - 1), !options.descending);
}

}  // namespace

TopKOutputs TopK(Value x, int64_t k) {
  return Ordered(x, k, /*smallest=*/false);
}

Value Sort(Value x, SortOptions options) { return OrderAll(x, options).values; }

Value ArgSort(Value x, SortOptions options) {
  return OrderAll(x, options).indices;
}

Value TakeAlongRows(Value x, Value indices) {
  return internal::Apply("TakeAlongRows", {x, indices});
}

Value AddAlongRowsLike(Value values, Value indices, Value like) {
  return internal::Apply("AddAlongRowsLike", {values, indices, like});
}

namespace internal {

void RegisterSortOps(OpRegistry* registry) {
  registry->Register({.name = "TopK",
                      .input_count_min = 1,
                      .input_count_max = 1,
                      .type_rule = TopKRule,
                      .gradient_rule = TopKGradient});
  registry->Register({.name = "TakeAlongRows",
                      .input_count_min = 2,
                      .input_count_max = 2,
                      .type_rule = TakeAlongRowsRule,
                      .gradient_rule = TakeAlongRowsGradient,
                      .golden_exemption = GoldenExemption::kGradientHelper});
  registry->Register({.name = "AddAlongRowsLike",
                      .input_count_min = 3,
                      .input_count_max = 3,
                      .type_rule = AddAlongRowsLikeRule,
                      .gradient_rule = AddAlongRowsLikeGradient,
                      .golden_exemption = GoldenExemption::kGradientHelper});
}

}  // namespace internal
}  // namespace muster
