#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/stablehlo/hlo_operators.h"
#include "common/compute/stablehlo/translations.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

// The axes of values that belong to slices along `axis` of an array of rank
// `rank`, where `index_rank` axes of indices stand in place of `axis`.
std::vector<int64_t> SliceAxes(int rank, int axis, int index_rank) {
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i) {
    if (i != axis) axes.push_back(i < axis ? i : i - 1 + index_rank);
  }
  return axes;
}

std::string ScatterAttributes(const std::vector<int64_t>& window_axes,
                              const std::vector<int64_t>& indexed_axes,
                              int index_vector_axis) {
  return absl::StrCat(
      "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = ",
      HloList(window_axes), ", inserted_window_dims = ", HloList(indexed_axes),
      ", scatter_dims_to_operand_dims = ", HloList(indexed_axes),
      ", index_vector_dim = ", index_vector_axis,
      ">, indices_are_sorted = false, unique_indices = false");
}

HloValue ScatterAdd(const HloType& type, const HloValue& indices,
                    const HloValue& values, const std::string& attributes) {
  HloBuilder& builder = *values.builder;
  return builder.Emit(
      "stablehlo.scatter", {builder.Constant(type, 0), indices, values}, type,
      attributes, builder.ReductionRegion(HloReduction::kSum, type.element));
}

// Returns `x` as a matrix of its rows along the last axis.
HloValue AsRows(const HloValue& x) {
  const int64_t length = x.shape().dim(x.rank() - 1);
  const int64_t rows = x.shape().ElementCountInRange(0, x.rank() - 1);
  return Reshape(x, {rows, length});
}

// Returns [rows, width, 2]: pairs of a row and an index into it.
HloValue PositionsInRows(const HloValue& indices) {
  const HloValue columns = AsRows(indices);
  const Shape shape = {columns.shape().dim(0), columns.shape().dim(1), 1};
  const HloValue rows = columns.builder->Iota({columns.type.element, shape}, 0);
  return Concat({rows, Reshape(columns, shape)}, 2);
}

}  // namespace

HloValue GatherRows(const HloValue& x, const HloValue& indices, int axis) {
  const std::vector<int64_t> slice_axes =
      SliceAxes(x.rank(), axis, indices.rank());
  std::vector<int64_t> sizes(x.shape().dims().begin(), x.shape().dims().end());
  std::vector<int64_t> dims(sizes.begin(), sizes.begin() + axis);
  dims.insert(dims.end(), indices.shape().dims().begin(),
              indices.shape().dims().end());
  dims.insert(dims.end(), sizes.begin() + axis + 1, sizes.end());
  const HloType type = {x.type.element, Shape(absl::MakeConstSpan(dims))};
  if (x.shape().element_count() == 0 || type.shape.element_count() == 0) {
    return x.builder->Constant(type, 0);
  }
  sizes[axis] = 1;
  return x.builder->Emit(
      "stablehlo.gather", {x, indices}, type,
      absl::StrCat("dimension_numbers = #stablehlo.gather<offset_dims = ",
                   HloList(slice_axes), ", collapsed_slice_dims = ",
                   HloList({axis}), ", start_index_map = ", HloList({axis}),
                   ", index_vector_dim = ", indices.rank(), ">, slice_sizes = ",
                   HloArray(sizes), ", indices_are_sorted = false"));
}

HloValue ScatterRows(const HloType& type, const HloValue& indices,
                     const HloValue& rows, int axis) {
  return ScatterAdd(
      type, indices, rows,
      ScatterAttributes(SliceAxes(type.shape.rank(), axis, indices.rank()),
                        {axis}, indices.rank()));
}

HloValue GatherToHlo(const HloNode& node) {
  return GatherRows(node.input(0), node.input(1),
                    node.AxisOf(node.input(0).rank()));
}

HloValue ScatterRowsLikeToHlo(const HloNode& node) {
  return ScatterRows(node.output(), node.input(1), node.input(0),
                     node.AxisOf(node.output().shape.rank()));
}

HloValue TakeAlongRowsToHlo(const HloNode& node) {
  const HloValue x = AsRows(node.input(0));
  const HloValue positions = PositionsInRows(node.input(1));
  if (node.output().shape.element_count() == 0) {
    return node.builder().Constant(node.output(), 0);
  }
  return Reshape(
      node.builder().Emit(
          "stablehlo.gather", {x, positions},
          {x.type.element,
           {positions.shape().dim(0), positions.shape().dim(1)}},
          "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, "
          "1], start_index_map = [0, 1], index_vector_dim = 2>, slice_sizes = "
          "array<i64: 1, 1>, indices_are_sorted = false"),
      node.output().shape);
}

HloValue AddAlongRowsLikeToHlo(const HloNode& node) {
  const Shape& shape = node.output().shape;
  const Shape rows = {shape.ElementCountInRange(0, shape.rank() - 1),
                      shape.dim(shape.rank() - 1)};
  return Reshape(
      ScatterAdd({node.output().element, rows}, PositionsInRows(node.input(1)),
                 AsRows(node.input(0)), ScatterAttributes({}, {0, 1}, 2)),
      shape);
}

HloValue OneHotToHlo(const HloNode& node) {
  const HloValue& indices = node.input(0);
  HloBuilder& builder = node.builder();
  const HloType& output = node.output();
  Shape shape = indices.shape();
  shape.InsertDim(shape.rank(), 1);
  const HloValue is_on =
      Compare("EQ",
              builder.Iota({indices.type.element, output.shape},
                           output.shape.rank() - 1),
              Reshape(indices, shape));
  return Select(
      is_on, builder.Constant(output, node.Attribute<double>("on_value", 1)),
      builder.Constant(output, node.Attribute<double>("off_value", 0)));
}

HloValue InTopKToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  const HloValue& targets = node.input(1);
  HloBuilder& builder = node.builder();
  const Shape column = {x.shape().dim(0), 1};
  const HloValue is_target =
      Compare("EQ", builder.Iota({targets.type.element, x.shape()}, 1),
              Reshape(targets, column));
  const HloValue wanted = ReduceKeepingAxes(
      HloReduction::kSum, Select(is_target, x, FilledLike(x, 0)), {1});
  const HloValue greater_count =
      Reduce(HloReduction::kSum, Convert(Compare("GT", x, wanted), "i32"), {1});
  const HloValue is_finite =
      Reduce(HloReduction::kAnd,
             builder.Emit("stablehlo.is_finite", {x}, {"i1", x.shape()}), {1});
  const HloValue has_target = Compare(
      "GT", Reduce(HloReduction::kSum, Convert(is_target, "i32"), {1}), 0);
  return Binary("stablehlo.and", Binary("stablehlo.and", is_finite, has_target),
                Compare("LT", greater_count,
                        static_cast<double>(node.Attribute<int64_t>("k", 1))));
}

namespace {

// The comparator of a sort of (element, position): NaN first, then the largest
// or the smallest elements. A stable sort keeps the order of equal ones.
std::string OrderRegion(HloBuilder* builder, absl::string_view element,
                        bool smallest) {
  const std::string type = HloType{element, Shape()}.ToString();
  const std::string bool_type = "tensor<i1>";
  const auto compare = [&](absl::string_view direction, const std::string& name,
                           const std::string& a, const std::string& b) {
    return absl::StrCat(name, " = \"stablehlo.compare\"(", a, ", ", b,
                        ") {comparison_direction = "
                        "#stablehlo<comparison_direction ",
                        direction, ">} : (", type, ", ", type, ") -> ",
                        bool_type, " ");
  };
  std::vector<std::string> n;
  for (int i = 0; i < 10; ++i) n.push_back(builder->NewName());
  const auto logic = [&](absl::string_view op, const std::string& name,
                         const std::string& a, const std::string& b) {
    return absl::StrCat(name, " = \"stablehlo.", op, "\"(", a, ", ", b, ") : (",
                        bool_type, ", ", bool_type, ") -> ", bool_type, " ");
  };
  return absl::StrCat(
      "{ ^bb0(", n[0], ": ", type, ", ", n[1], ": ", type, ", ", n[2],
      ": tensor<i32>, ", n[3],
      ": tensor<i32>): ", compare(smallest ? "LT" : "GT", n[4], n[0], n[1]),
      compare("NE", n[5], n[0], n[0]), compare("EQ", n[6], n[1], n[1]),
      logic("and", n[7], n[5], n[6]), logic("or", n[8], n[4], n[7]),
      "\"stablehlo.return\"(", n[8], ") : (", bool_type, ") -> () }");
}

}  // namespace

absl::StatusOr<HloValues> TopKToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  const int last = x.rank() - 1;
  HloBuilder& builder = node.builder();
  const HloValue positions = builder.Iota({"i32", x.shape()}, last);
  const HloValues sorted = builder.EmitMany(
      "stablehlo.sort", {x, positions}, {x.type, positions.type},
      absl::StrCat("dimension = ", last, " : i64, is_stable = true"),
      OrderRegion(&builder, x.type.element, node.Attribute("smallest", false)));
  const std::vector<int64_t> begin(x.rank(), 0);
  return HloValues{Slice(sorted[0], begin, node.output(0).shape.dims()),
                   Slice(sorted[1], begin, node.output(1).shape.dims())};
}

}  // namespace muster
