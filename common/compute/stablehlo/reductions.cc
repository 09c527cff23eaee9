#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/compute/stablehlo/hlo_operators.h"
#include "common/compute/stablehlo/translations.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

HloReduction ReductionOf(absl::string_view op) {
  if (op == "Max") return HloReduction::kMax;
  if (op == "Min") return HloReduction::kMin;
  if (op == "Prod") return HloReduction::kProduct;
  return HloReduction::kSum;
}

int64_t ExtentOf(const Shape& shape, const std::vector<int64_t>& axes) {
  int64_t count = 1;
  for (const int64_t axis : axes) count *= shape.dim(static_cast<int>(axis));
  return count;
}

// Moves the elements along `axis` by `distance` towards the end or, if
// `reverse`, towards the beginning. The freed elements are 0.
HloValue Shifted(const HloValue& x, int axis, int64_t distance, bool reverse) {
  std::vector<int64_t> low(x.rank(), 0);
  std::vector<int64_t> high(x.rank(), 0);
  low[axis] = reverse ? -distance : distance;
  high[axis] = -low[axis];
  return Pad(x, x.builder->Constant({x.type.element, Shape()}, 0), low, high);
}

// Returns `x` of rank at least 2, or with one more axis of extent 1 in front,
// with the last two axes swapped.
HloValue SwapMatrix(const HloValue& x) {
  std::vector<int64_t> permutation(x.rank());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[x.rank() - 2], permutation[x.rank() - 1]);
  return Transpose(x, permutation);
}

// Broadcasts all axes but the last two to `batch`.
HloValue BroadcastMatrices(const HloValue& x, absl::Span<const int64_t> batch) {
  std::vector<int64_t> dims(batch.begin(), batch.end());
  dims.push_back(x.shape().dim(x.rank() - 2));
  dims.push_back(x.shape().dim(x.rank() - 1));
  return BroadcastTo(x, Shape(absl::MakeConstSpan(dims)));
}

}  // namespace

HloValue ReduceToHlo(const HloNode& node) {
  return Reshape(Reduce(ReductionOf(node.op()), node.input(0),
                        node.AxesOf(node.input(0).rank())),
                 node.output().shape);
}

HloValue MeanToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  const std::vector<int64_t> axes = node.AxesOf(x.rank());
  const double count = static_cast<double>(ExtentOf(x.shape(), axes));
  // The sum of integers may exceed their type.
  const HloValue sum = Reduce(HloReduction::kSum,
                              x.type.is_float() ? x : Convert(x, "i64"), axes);
  return Reshape(Convert(sum / count, node.output().element),
                 node.output().shape);
}

HloValue SumLikeToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  const Shape& shape = node.output().shape;
  std::vector<int64_t> axes;
  const int added = x.rank() - shape.rank();
  for (int i = 0; i < x.rank(); ++i) {
    if (i < added || (shape.dim(i - added) == 1 && x.shape().dim(i) != 1)) {
      axes.push_back(i);
    }
  }
  return Reshape(Reduce(HloReduction::kSum, x, axes), shape);
}

HloValue CountAlongToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  return node.builder().Constant(
      node.output(),
      static_cast<double>(ExtentOf(x.shape(), node.AxesOf(x.rank()))));
}

// The first position of the largest or smallest element.
HloValue ArgToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  const int axis = node.AxisOf(x.rank());
  const int64_t count = x.shape().dim(axis);
  if (count == 0) return node.builder().Constant(node.output(), 0);
  const HloValue best = ReduceKeepingAxes(
      node.op() == "ArgMax" ? HloReduction::kMax : HloReduction::kMin, x,
      {axis});
  const HloValue positions =
      node.builder().Iota({node.output().element, x.shape()}, axis);
  // The last position if no element equals the best one, which is NaN then.
  return Reshape(
      Reduce(HloReduction::kMin,
             Select(Compare("EQ", x, best), positions,
                    FilledLike(positions, static_cast<double>(count - 1))),
             {axis}),
      node.output().shape);
}

// Doubles the distance over which elements are summed until it covers the axis.
HloValue CumSumToHlo(const HloNode& node) {
  HloValue sum = node.input(0);
  const int axis = node.AxisOf(sum.rank());
  const int64_t count = sum.shape().dim(axis);
  const bool reverse = node.Attribute("reverse", false);
  if (node.Attribute("exclusive", false) && count > 0) {
    sum = Shifted(sum, axis, 1, reverse);
  }
  for (int64_t distance = 1; distance < count; distance *= 2) {
    sum = sum + Shifted(sum, axis, distance, reverse);
  }
  return sum;
}

HloValue MatMulToHlo(const HloNode& node) {
  HloValue a = node.input(0);
  HloValue b = node.input(1);
  const bool transpose_a = node.Attribute("transpose_a", false);
  const bool transpose_b = node.Attribute("transpose_b", false);
  const Shape& shape = node.output().shape;
  const absl::Span<const int64_t> batch = shape.dims().first(shape.rank() - 2);
  const int64_t inner_a = transpose_a ? 2 : 1;
  const int64_t inner_b = transpose_b ? 1 : 2;
  if (b.rank() == 2 && !batch.empty() && a.rank() == shape.rank()) {
    // One matrix for the whole batch: its rows are rows of one product.
    if (transpose_a) a = SwapMatrix(a);
    return Reshape(Contract(a, a.rank() - 1, b, b.rank() - inner_b, 0), shape);
  }
  a = BroadcastMatrices(a, batch);
  b = BroadcastMatrices(b, batch);
  return Contract(a, a.rank() - inner_a, b, b.rank() - inner_b,
                  static_cast<int>(batch.size()));
}

}  // namespace muster
