#include "common/compute/ops/selection_ops.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/ops/apply.h"
#include "common/compute/ops/arithmetic.h"
#include "common/compute/ops/comparison.h"
#include "common/compute/ops/cumulative_ops.h"
#include "common/compute/ops/index_ops.h"
#include "common/compute/ops/reduction.h"
#include "common/compute/ops/shape_ops.h"
#include "common/compute/ops/slice_ops.h"
#include "common/compute/ops/sort_ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

// Returns 0, 1, ... along the only axis of `like`, as int32.
Value Positions(Value like) {
  return CumSum(Cast(OnesLike(like), DType::kInt32)) - 1.0;
}

// Returns zeros of the dtype of `x`: `count` rows with the extents of its rows.
Value ZeroRows(Value x, int64_t count) {
  std::vector<int64_t> shape(x.shape().dims().begin(), x.shape().dims().end());
  shape[0] = count;
  return BroadcastTo(ScalarLike(x, 0), std::move(shape));
}

// Puts row i of `x` at row places[i] of `size` rows; rows at `size` are
// dropped.
Value PutRows(Value x, Value places, int64_t size) {
  const Value placed = ScatterRowsLike(x, places, ZeroRows(x, size + 1));
  std::vector<int64_t> extents(x.shape().rank(), -1);
  extents[0] = size;
  return Slice(placed, std::vector<int64_t>(extents.size(), 0), extents);
}

// Returns what is wrong with the operands; empty if nothing is.
std::string MaskError(Value x, Value mask, const SelectionOptions& options) {
  if (!x.ok() || !mask.ok()) return "BooleanMask needs values";
  const Shape& shape = x.shape();
  const int rank = mask.shape().rank();
  if (mask.dtype() != DType::kBool || rank < 1 || rank > shape.rank()) {
    return absl::StrCat(
        "BooleanMask needs a bool mask with the shape of the first axes of x; "
        "x is ",
        x.type().ToString(), " and the mask is ", mask.type().ToString());
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool is_known = shape.dim(axis) != Shape::kUnknown;
    if (axis >= rank && !is_known) {
      return absl::StrCat("BooleanMask needs rows of known extents; x is ",
                          x.type().ToString());
    }
    if (axis >= rank || !is_known ||
        mask.shape().dim(axis) == Shape::kUnknown ||
        mask.shape().dim(axis) == shape.dim(axis)) {
      continue;
    }
    return absl::StrCat("BooleanMask: axis ", axis, " of x, ",
                        x.type().ToString(), ", and of the mask, ",
                        mask.type().ToString(), ", differ");
  }
  if (options.size < 1) {
    return absl::StrCat("BooleanMask: size is ", options.size,
                        ", expected at least 1");
  }
  return "";
}

// Joins the first `count` axes.
Value WithFlatRows(Value x, int count) {
  if (count == 1) return x;
  std::vector<int64_t> shape = {-1};
  const auto dims = x.shape().dims();
  shape.insert(shape.end(), dims.begin() + count, dims.end());
  return Reshape(x, std::move(shape));
}

}  // namespace

MaskedRows BooleanMask(Value x, Value mask, const SelectionOptions& options) {
  const std::string mistake = MaskError(x, mask, options);
  if (!mistake.empty()) {
    const Value failed = internal::ReportInvalidArgument({x, mask}, mistake);
    return {failed, failed};
  }
  if (x.dtype() == DType::kBool) {
    const MaskedRows rows = BooleanMask(Cast(x, DType::kUint8), mask, options);
    return {Cast(rows.values, DType::kBool), rows.count};
  }
  const int64_t size = options.size;
  x = WithFlatRows(x, mask.shape().rank());
  mask = WithFlatRows(mask, mask.shape().rank());
  const Value kept = Cast(mask, DType::kInt32);
  const Value order = CumSum(kept) - 1.0;
  const double dropped = static_cast<double>(size);
  const Value places = Select(LogicalAnd(mask, order < dropped), order,
                              ScalarLike(order, dropped));
  const Value rows = PutRows(x, places, size);
  std::vector<int64_t> row_shape(x.shape().rank(), 1);
  row_shape[0] = size;
  const Value is_there = Reshape(PutRows(kept, places, size) > 0.0, row_shape);
  return {Select(is_there, rows, ScalarLike(rows, options.fill_value)),
          Sum(kept)};
}

UniqueValues Unique(Value x, const SelectionOptions& options) {
  if (!x.ok() || x.shape().rank() != 1 || !x.shape().IsFullyKnown()) {
    const Value failed = internal::ReportInvalidArgument(
        {x}, "Unique needs one axis whose extent is known");
    return {failed, failed, failed};
  }
  // In this order equal elements are adjacent, sorted by position. A group is a
  // run of equal elements.
  const Value order = ArgSort(x);
  const Value sorted = Gather(x, order);
  const Value positions = Positions(order);
  const Value before =
      Gather(sorted, Maximum(positions - 1.0, ScalarLike(positions, 0)));
  const Value starts_group = Cast(
      LogicalOr(positions <= 0.0, NotEqual(sorted, before)), DType::kInt32);
  const Value group = CumSum(starts_group) - 1.0;
  const Value zeros = ZerosLike(order);
  const Value first_of_group =
      ScatterRowsLike(order * starts_group, group, zeros);
  // For each position in x: the position where its value appears first, and the
  // number of different values that appear before that.
  const Value first =
      Gather(first_of_group, ScatterRowsLike(group, order, zeros));
  const Value is_first = Equal(first, positions);
  const Value rank = CumSum(Cast(is_first, DType::kInt32)) - 1.0;
  const MaskedRows values = BooleanMask(x, is_first, options);
  return {values.values, Gather(rank, first), values.count};
}

}  // namespace muster
