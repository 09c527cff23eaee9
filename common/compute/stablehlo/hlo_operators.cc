#include "common/compute/stablehlo/hlo_operators.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/check.h"

namespace muster {
namespace {

HloValue LikeNumber(const HloValue& x, double value) {
  return x.builder->Constant({x.type.element, Shape()}, value);
}

// Broadcasts both operands to their common shape.
Shape CommonShape(const HloValue& a, const HloValue& b) {
  const auto shape = BroadcastShapes(a.shape(), b.shape());
  MUSTER_CHECK(shape.ok());
  return *shape;
}

}  // namespace

HloValue Unary(absl::string_view op, const HloValue& x) {
  return x.builder->Emit(op, {x}, x.type);
}

HloValue Binary(absl::string_view op, const HloValue& a, const HloValue& b) {
  const Shape shape = CommonShape(a, b);
  return a.builder->Emit(op, {BroadcastTo(a, shape), BroadcastTo(b, shape)},
                         {a.type.element, shape});
}

HloValue operator+(const HloValue& a, const HloValue& b) {
  return Binary("stablehlo.add", a, b);
}
HloValue operator-(const HloValue& a, const HloValue& b) {
  return Binary("stablehlo.subtract", a, b);
}
HloValue operator*(const HloValue& a, const HloValue& b) {
  return Binary("stablehlo.multiply", a, b);
}
HloValue operator/(const HloValue& a, const HloValue& b) {
  return Binary("stablehlo.divide", a, b);
}
HloValue operator-(const HloValue& x) { return Unary("stablehlo.negate", x); }

HloValue operator+(const HloValue& a, double b) { return a + LikeNumber(a, b); }
HloValue operator-(const HloValue& a, double b) { return a - LikeNumber(a, b); }
HloValue operator*(const HloValue& a, double b) { return a * LikeNumber(a, b); }
HloValue operator/(const HloValue& a, double b) { return a / LikeNumber(a, b); }
HloValue operator+(double a, const HloValue& b) { return LikeNumber(b, a) + b; }
HloValue operator-(double a, const HloValue& b) { return LikeNumber(b, a) - b; }
HloValue operator*(double a, const HloValue& b) { return LikeNumber(b, a) * b; }
HloValue operator/(double a, const HloValue& b) { return LikeNumber(b, a) / b; }

HloValue Compare(absl::string_view direction, const HloValue& a,
                 const HloValue& b) {
  const Shape shape = CommonShape(a, b);
  return a.builder->Emit("stablehlo.compare",
                         {BroadcastTo(a, shape), BroadcastTo(b, shape)},
                         {"i1", shape},
                         absl::StrCat("comparison_direction = "
                                      "#stablehlo<comparison_direction ",
                                      direction, ">"));
}

HloValue Compare(absl::string_view direction, const HloValue& a, double b) {
  return Compare(direction, a, LikeNumber(a, b));
}

HloValue Select(const HloValue& condition, const HloValue& a,
                const HloValue& b) {
  const auto shape = BroadcastShapes(condition.shape(), CommonShape(a, b));
  MUSTER_CHECK(shape.ok());
  return a.builder->Emit("stablehlo.select",
                         {BroadcastTo(condition, *shape),
                          BroadcastTo(a, *shape), BroadcastTo(b, *shape)},
                         {a.type.element, *shape});
}

HloValue Maximum(const HloValue& a, const HloValue& b) {
  return Binary("stablehlo.maximum", a, b);
}
HloValue Exp(const HloValue& x) { return Unary("stablehlo.exponential", x); }
HloValue Log(const HloValue& x) { return Unary("stablehlo.log", x); }
HloValue Log1p(const HloValue& x) { return Unary("stablehlo.log_plus_one", x); }
HloValue Abs(const HloValue& x) {
  // There are no negative unsigned numbers, and no operation for them.
  return x.type.element[0] == 'u' ? x : Unary("stablehlo.abs", x);
}
HloValue Tanh(const HloValue& x) { return Unary("stablehlo.tanh", x); }
HloValue HloValue::SquareRoot(const HloValue& x) {
  return Unary("stablehlo.sqrt", x);
}

HloValue FilledLike(const HloValue& x, double value) {
  return x.builder->Constant(x.type, value);
}

HloValue Convert(const HloValue& x, absl::string_view element) {
  if (x.type.element == element) return x;
  return x.builder->Emit("stablehlo.convert", {x}, {element, x.shape()});
}

HloValue Reshape(const HloValue& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return x.builder->Emit("stablehlo.reshape", {x}, {x.type.element, shape});
}

HloValue BroadcastAlong(const HloValue& x, const Shape& shape,
                        absl::Span<const int64_t> axes) {
  return x.builder->Emit(
      "stablehlo.broadcast_in_dim", {x}, {x.type.element, shape},
      absl::StrCat("broadcast_dimensions = ", HloArray(axes)));
}

HloValue BroadcastTo(const HloValue& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  std::vector<int64_t> axes(x.rank());
  std::iota(axes.begin(), axes.end(), shape.rank() - x.rank());
  return BroadcastAlong(x, shape, axes);
}

HloValue Transpose(const HloValue& x, absl::Span<const int64_t> permutation) {
  Shape shape = x.shape();
  for (int i = 0; i < shape.rank(); ++i) {
    shape.set_dim(i, x.shape().dim(static_cast<int>(permutation[i])));
  }
  return x.builder->Emit("stablehlo.transpose", {x}, {x.type.element, shape},
                         absl::StrCat("permutation = ", HloArray(permutation)));
}

HloValue Slice(const HloValue& x, absl::Span<const int64_t> begin,
               absl::Span<const int64_t> size) {
  std::vector<int64_t> end(begin.begin(), begin.end());
  for (size_t i = 0; i < end.size(); ++i) end[i] += size[i];
  const std::vector<int64_t> strides(begin.size(), 1);
  return x.builder->Emit("stablehlo.slice", {x}, {x.type.element, Shape(size)},
                         absl::StrCat("start_indices = ", HloArray(begin),
                                      ", limit_indices = ", HloArray(end),
                                      ", strides = ", HloArray(strides)));
}

HloValue Concat(absl::Span<const HloValue> parts, int64_t axis) {
  Shape shape = parts[0].shape();
  int64_t extent = 0;
  for (const HloValue& part : parts) {
    extent += part.shape().dim(static_cast<int>(axis));
  }
  shape.set_dim(static_cast<int>(axis), extent);
  return parts[0].builder->Emit("stablehlo.concatenate", parts,
                                {parts[0].type.element, shape},
                                absl::StrCat("dimension = ", axis, " : i64"));
}

HloValue Reverse(const HloValue& x, absl::Span<const int64_t> axes) {
  return x.builder->Emit("stablehlo.reverse", {x}, x.type,
                         absl::StrCat("dimensions = ", HloArray(axes)));
}

HloValue Pad(const HloValue& x, const HloValue& value,
             absl::Span<const int64_t> low, absl::Span<const int64_t> high,
             absl::Span<const int64_t> interior) {
  const std::vector<int64_t> none(low.size(), 0);
  if (interior.empty()) interior = none;
  Shape shape = x.shape();
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t between =
        std::max<int64_t>(shape.dim(i) - 1, 0) * interior[i];
    shape.set_dim(i, low[i] + shape.dim(i) + between + high[i]);
  }
  return x.builder->Emit(
      "stablehlo.pad", {x, value}, {x.type.element, shape},
      absl::StrCat("edge_padding_low = ", HloArray(low),
                   ", edge_padding_high = ", HloArray(high),
                   ", interior_padding = ", HloArray(interior)));
}

HloValue Reduce(HloReduction reduction, const HloValue& x,
                absl::Span<const int64_t> axes) {
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) {
      shape.InsertDim(shape.rank(), x.shape().dim(i));
    }
  }
  std::vector<int64_t> sorted(axes.begin(), axes.end());
  std::sort(sorted.begin(), sorted.end());
  HloBuilder& builder = *x.builder;
  return builder.Emit(
      "stablehlo.reduce", {x, builder.InitialValue(reduction, x.type.element)},
      {x.type.element, shape}, absl::StrCat("dimensions = ", HloArray(sorted)),
      builder.ReductionRegion(reduction, x.type.element));
}

HloValue ReduceKeepingAxes(HloReduction reduction, const HloValue& x,
                           absl::Span<const int64_t> axes) {
  Shape shape = x.shape();
  for (const int64_t axis : axes) shape.set_dim(static_cast<int>(axis), 1);
  return Reshape(Reduce(reduction, x, axes), shape);
}

HloValue AllReduce(HloReduction reduction, const HloValue& x,
                   int replica_count) {
  if (replica_count == 1) return x;
  std::vector<int64_t> replicas(replica_count);
  std::iota(replicas.begin(), replicas.end(), 0);
  return x.builder->Emit(
      "stablehlo.all_reduce", {x}, x.type,
      absl::StrCat("replica_groups = dense<[", HloList(replicas),
                   "]> : tensor<1x", replica_count, "xi64>"),
      x.builder->ReductionRegion(reduction, x.type.element));
}

HloValue Contract(const HloValue& a, int64_t axis_a, const HloValue& b,
                  int64_t axis_b, int batch_rank) {
  std::vector<int64_t> batch(batch_rank);
  std::iota(batch.begin(), batch.end(), 0);
  Shape shape;
  for (int i = 0; i < a.rank(); ++i) {
    if (i != axis_a) shape.InsertDim(shape.rank(), a.shape().dim(i));
  }
  for (int i = batch_rank; i < b.rank(); ++i) {
    if (i != axis_b) shape.InsertDim(shape.rank(), b.shape().dim(i));
  }
  return a.builder->Emit(
      "stablehlo.dot_general", {a, b}, {a.type.element, shape},
      absl::StrCat("dot_dimension_numbers = #stablehlo.dot<"
                   "lhs_batching_dimensions = ",
                   HloList(batch),
                   ", rhs_batching_dimensions = ", HloList(batch),
                   ", lhs_contracting_dimensions = ", HloList({axis_a}),
                   ", rhs_contracting_dimensions = ", HloList({axis_b}), ">"));
}

std::vector<int64_t> NormalizedAxes(absl::Span<const int64_t> axes, int rank) {
  std::vector<int64_t> normalized;
  for (const int64_t axis : axes) {
    normalized.push_back(axis < 0 ? axis + rank : axis);
  }
  return normalized;
}

}  // namespace muster
