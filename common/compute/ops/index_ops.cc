#include "common/compute/ops/index_ops.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/ops/apply.h"
#include "common/compute/ops/arithmetic.h"
#include "common/compute/ops/check_ops.h"
#include "common/compute/ops/comparison.h"
#include "common/compute/ops/control.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/shape_ops.h"
#include "common/compute/ops/slice_ops.h"
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

// Returns n of indices [..., n], the number of axes that they index; -1 if it
// is unknown or exceeds the rank of `shape`, or an extent of `shape` is
// unknown.
int IndexedAxes(const Shape& shape, const Shape& indices) {
  if (!shape.IsFullyKnown() || indices.rank() == 0) return -1;
  const int64_t count = indices.dims().back();
  return count >= 1 && count <= shape.rank() ? static_cast<int>(count) : -1;
}

// Returns the row numbers of indices [..., n] in a tensor of `shape` whose
// first n axes are joined. Fails the step if an index is out of range.
Value FlatIndices(Value indices, const Shape& shape, int indexed) {
  const int last = indices.shape().rank() - 1;
  Value flat;
  for (int axis = 0; axis < indexed; ++axis) {
    std::vector<int64_t> begin(last + 1, 0);
    std::vector<int64_t> size(last + 1, -1);
    begin[last] = axis;
    size[last] = 1;
    Value index = Squeeze(Slice(indices, begin, size), {last});
    const auto extent = static_cast<double>(shape.dim(axis));
    index = Assert(index, LogicalAnd(index >= 0.0, index < extent),
                   absl::StrCat("an index of axis ", axis, " is not in [0, ",
                                shape.dim(axis), ")"));
    flat = axis == 0 ? index : flat * extent + index;
  }
  return flat;
}

}  // namespace

Value Gather(Value params, Value indices, int64_t axis) {
  return internal::Apply("Gather", {params, indices}, {{"axis", axis}});
}

Value ScatterRowsLike(Value values, Value indices, Value like, int64_t axis) {
  return internal::Apply("ScatterRowsLike", {values, indices, like},
                         {{"axis", axis}});
}

Value GatherNd(Value params, Value indices) {
  if (!params.ok() || !indices.ok()) return Gather(params, indices);
  const Shape& shape = params.shape();
  const int indexed = IndexedAxes(shape, indices.shape());
  if (indexed < 0) {
    return internal::ReportInvalidArgument(
        {params, indices},
        "GatherNd needs known extents of params, and indices [..., n] with n "
        "from 1 to the rank of params");
  }
  std::vector<int64_t> rows = {-1};
  rows.insert(rows.end(), shape.dims().begin() + indexed, shape.dims().end());
  return Gather(Reshape(params, std::move(rows)),
                FlatIndices(indices, shape, indexed));
}

Value ScatterNd(Value indices, Value updates, std::vector<int64_t> shape) {
  const auto type = Shape::Create(shape, /*allow_unknown=*/false);
  const int indexed = type.ok() && indices.ok() && updates.ok()
                          ? IndexedAxes(*type, indices.shape())
                          : -1;
  if (indexed < 0) {
    return internal::ReportInvalidArgument(
        {indices, updates},
        "ScatterNd needs a shape with known extents, and indices [..., n] with "
        "n from 1 to its rank");
  }
  std::vector<int64_t> rows = {type->ElementCountInRange(0, indexed)};
  rows.insert(rows.end(), shape.begin() + indexed, shape.end());
  const Value zeros = BroadcastTo(ScalarLike(updates, 0), std::move(rows));
  return Reshape(
      ScatterRowsLike(updates, FlatIndices(indices, *type, indexed), zeros),
      std::move(shape));
}

Value SegmentSum(Value data, Value segment_ids, int64_t segment_count) {
  if (!data.ok() || !segment_ids.ok() || segment_count < 0 ||
      data.shape().rank() < 1) {
    return internal::ReportInvalidArgument(
        {data, segment_ids},
        "SegmentSum needs rows of data and a count of segments that is not "
        "negative");
  }
  std::vector<int64_t> shape(data.shape().dims().begin(),
                             data.shape().dims().end());
  // The last row collects the rows that belong to no segment.
  shape[0] = segment_count + 1;
  const Value ids = Select(
      segment_ids < 0.0,
      ScalarLike(segment_ids, static_cast<double>(segment_count)), segment_ids);
  // An id of the last row is out of range.
  const Value checked =
      Assert(ids, segment_ids < static_cast<double>(segment_count),
             absl::StrCat("SegmentSum: an id is not below ", segment_count));
  const Value sums = ScatterRowsLike(
      data, checked, BroadcastTo(ScalarLike(data, 0), std::move(shape)));
  std::vector<int64_t> size(data.shape().rank(), -1);
  size[0] = segment_count;
  return Slice(sums, std::vector<int64_t>(size.size(), 0), size);
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
                      .low_precision = LowPrecisionPolicy::kDirect});
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
                      .low_precision = LowPrecisionPolicy::kDirect});
  registry->Register({.name = "InTopK",
                      .input_count_min = 2,
                      .input_count_max = 2,
                      .type_rule = InTopKRule});
}

}  // namespace internal
}  // namespace muster
