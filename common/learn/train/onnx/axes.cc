// Translations of ops along axes: reductions, joining, slicing, padding,
// sorting. They compute in whatever order the axes of their inputs are.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/train/onnx/graph_translator.h"
#include "common/learn/train/onnx/onnx_graph.h"
#include "common/learn/train/onnx/translations.h"
#include "proto/onnx.pb.h"

namespace muster {
namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

// Returns x[begin : end] along each of the axes at `positions`.
std::string Sliced(OnnxNode& node, const std::string& x,
                   absl::Span<const int64_t> begin,
                   absl::Span<const int64_t> end,
                   absl::Span<const int64_t> positions) {
  return node.Emit("Slice",
                   {x, node.Ints(begin), node.Ints(end), node.Ints(positions)});
}

// The order in which inputs of one rank are joined.
AxisOrder JoinedOrder(const OnnxNode& node) {
  for (int i = 0; i < node.input_count(); ++i) {
    const AxisOrder order = node.ExistingOrder(i);
    if (order != InOrder(node.input_rank(i))) return order;
  }
  return InOrder(node.input_rank(0));
}

}  // namespace

absl::Status SoftmaxToOnnx(OnnxNode& node) {
  const AxisOrder order = node.ExistingOrder(0);
  const int64_t last = PositionOf(node.input_rank(0) - 1, order);
  node.SetOutput(
      0, node.Emit(node.op(), {node.Input(0, order)}, {OnnxInt("axis", last)}),
      order);
  return absl::OkStatus();
}

absl::Status LayerNormToOnnx(OnnxNode& node) {
  const int64_t axis = node.input_rank(0) - node.input_rank(1);
  const auto epsilon = node.Attribute<double>("epsilon");
  const std::string x = node.Input(0);
  const std::string scale = node.Input(1);
  const std::string offset = node.Input(2);
  std::vector<int64_t> axes;
  for (int64_t i = axis; i < node.input_rank(0); ++i) axes.push_back(i);
  const auto mean_of = [&](const std::string& value) {
    return node.Emit("ReduceMean", {value},
                     {OnnxInts("axes", axes), OnnxInt("keepdims", 1)});
  };
  const std::string mean = mean_of(x);
  const std::string centred = node.Emit("Sub", {x, mean});
  const std::string variance = mean_of(node.Emit("Mul", {centred, centred}));
  const std::string inverse = node.Emit(
      "Reciprocal",
      {node.Emit(
          "Sqrt",
          {node.Emit(
              "Add",
              {variance, node.Number(epsilon, node.output_type(1).dtype)})})});
  node.SetOutput(1, node.Emit("Squeeze", {mean, node.Ints(axes)}));
  node.SetOutput(2, node.Emit("Squeeze", {inverse, node.Ints(axes)}));
  node.SetOutput(
      0, node.Emit("LayerNormalization", {x, scale, offset},
                   {OnnxInt("axis", axis), OnnxFloat("epsilon", epsilon)}));
  return absl::OkStatus();
}

absl::Status ReduceToOnnx(OnnxNode& node) {
  const std::vector<int64_t> axes = node.Axes("axes", node.input_rank(0));
  if (axes.empty()) return ForwardToOnnx(node);
  const bool keep_dims = node.Attribute<bool>("keep_dims");
  const AxisOrder order = node.ExistingOrder(0);
  const std::vector<int64_t> positions = PositionsOf(axes, order);
  std::vector<std::string> inputs = {node.Input(0, order)};
  std::vector<proto::OnnxAttribute> attributes = {
      OnnxInt("keepdims", keep_dims ? 1 : 0)};
  // The axes of a sum alone are an input in this version of ONNX.
  if (node.op() == "Sum") {
    inputs.push_back(node.Ints(positions));
  } else {
    attributes.push_back(OnnxInts("axes", positions));
  }
  node.SetOutput(0,
                 node.Emit(absl::StrCat("Reduce", node.op()), inputs,
                           std::move(attributes)),
                 keep_dims ? order : WithoutAxes(order, axes));
  return absl::OkStatus();
}

absl::Status ArgToOnnx(OnnxNode& node) {
  const int64_t axis = node.Axis("axis", node.input_rank(0));
  const AxisOrder order = node.ExistingOrder(0);
  node.SetOutput(0,
                 node.Emit(node.op(), {node.Input(0, order)},
                           {OnnxInt("axis", PositionOf(axis, order)),
                            OnnxInt("keepdims", 0)}),
                 WithoutAxes(order, {axis}));
  return absl::OkStatus();
}

absl::Status CumSumToOnnx(OnnxNode& node) {
  const DType dtype = node.input_type(0).dtype;
  if (dtype == DType::kUint8) return node.Refuse("ONNX has no sums of uint8");
  const AxisOrder order = node.ExistingOrder(0);
  const auto axis = static_cast<double>(
      PositionOf(node.Axis("axis", node.input_rank(0)), order));
  node.SetOutput(
      0,
      node.Emit(
          "CumSum", {node.Input(0, order), node.Number(axis, DType::kInt64)},
          {OnnxInt("exclusive", node.Attribute<bool>("exclusive") ? 1 : 0),
           OnnxInt("reverse", node.Attribute<bool>("reverse") ? 1 : 0)}),
      order);
  return absl::OkStatus();
}

absl::Status CountAlongToOnnx(OnnxNode& node) {
  const std::vector<int64_t> axes = node.Axes("axes", node.input_rank(0));
  const AxisOrder order = node.ExistingOrder(0);
  const std::string shape = node.Emit("Shape", {node.Input(0, order)});
  const std::string extents =
      node.Emit("Gather", {shape, node.Ints(PositionsOf(axes, order))});
  const std::string count =
      node.Emit("ReduceProd", {extents}, {OnnxInt("keepdims", 0)});
  node.SetOutput(
      0, node.Emit("Cast", {count},
                   {OnnxInt("to", OnnxDTypeOf(node.output_type(0).dtype))}));
  return absl::OkStatus();
}

absl::Status ConcatToOnnx(OnnxNode& node) {
  const AxisOrder order = JoinedOrder(node);
  std::vector<std::string> inputs;
  for (int i = 0; i < node.input_count(); ++i) {
    inputs.push_back(node.Input(i, order));
  }
  const int64_t axis = node.Axis("axis", node.output_rank());
  node.SetOutput(
      0,
      node.Emit("Concat", inputs, {OnnxInt("axis", PositionOf(axis, order))}),
      order);
  return absl::OkStatus();
}

absl::Status StackToOnnx(OnnxNode& node) {
  const int64_t axis = node.Axis("axis", node.output_rank());
  const std::string axes = node.Ints({axis});
  std::vector<std::string> inputs;
  for (int i = 0; i < node.input_count(); ++i) {
    inputs.push_back(node.Emit("Unsqueeze", {node.Input(i), axes}));
  }
  node.SetOutput(0, node.Emit("Concat", inputs, {OnnxInt("axis", axis)}));
  return absl::OkStatus();
}

absl::Status UnstackToOnnx(OnnxNode& node) {
  const int64_t axis = node.Axis("axis", node.input_rank(0));
  for (int i = 0; i < node.output_count(); ++i) {
    const std::string index = node.Number(i, DType::kInt64);
    node.SetOutput(i, node.Emit("Gather", {node.Input(0), index},
                                {OnnxInt("axis", axis)}));
  }
  return absl::OkStatus();
}

absl::Status SplitToOnnx(OnnxNode& node) {
  const AxisOrder order = node.ExistingOrder(0);
  const int64_t axis = node.Axis("axis", node.input_rank(0));
  const auto sizes = node.Attribute<std::vector<int64_t>>("sizes");
  // A piece of unknown size is between pieces of known sizes. Those after it
  // are counted from the end.
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t end = begin + sizes[i];
    if (sizes[i] == -1) {
      end = 0;
      for (size_t k = i + 1; k < sizes.size(); ++k) end -= sizes[k];
    }
    const bool is_last = i + 1 == sizes.size();
    node.SetOutput(
        static_cast<int>(i),
        Sliced(node, node.Input(0, order), {begin}, {is_last ? kToTheEnd : end},
               {PositionOf(axis, order)}),
        order);
    begin = end;
  }
  return absl::OkStatus();
}

absl::Status SliceToOnnx(OnnxNode& node) {
  const AxisOrder order = node.ExistingOrder(0);
  const auto begin = node.Attribute<std::vector<int64_t>>("begin");
  const auto size = node.Attribute<std::vector<int64_t>>("size");
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;
  std::vector<int64_t> positions;
  for (size_t axis = 0; axis < begin.size(); ++axis) {
    if (begin[axis] == 0 && size[axis] == -1) continue;
    starts.push_back(begin[axis]);
    ends.push_back(size[axis] == -1 ? kToTheEnd : begin[axis] + size[axis]);
    positions.push_back(PositionOf(static_cast<int64_t>(axis), order));
  }
  if (positions.empty()) return ForwardToOnnx(node);
  node.SetOutput(0, Sliced(node, node.Input(0, order), starts, ends, positions),
                 order);
  return absl::OkStatus();
}

absl::Status SliceLikeToOnnx(OnnxNode& node) {
  const std::string begin =
      node.Ints(node.Attribute<std::vector<int64_t>>("begin"));
  const std::string size = node.Emit("Shape", {node.Input(1)});
  const std::string end = node.Emit("Add", {begin, size});
  node.SetOutput(0, node.Emit("Slice", {node.Input(0), begin, end}));
  return absl::OkStatus();
}

absl::Status PadToOnnx(OnnxNode& node) {
  const AxisOrder order = node.ExistingOrder(0);
  const auto paddings = node.Attribute<std::vector<int64_t>>("paddings");
  std::vector<int64_t> pads;
  for (const int side : {0, 1}) {
    for (const int64_t axis : order) pads.push_back(paddings[2 * axis + side]);
  }
  const std::string value =
      node.Number(node.Attribute<double>("value"), node.output_type(0).dtype);
  node.SetOutput(
      0, node.Emit("Pad", {node.Input(0, order), node.Ints(pads), value}),
      order);
  return absl::OkStatus();
}

absl::Status ReverseToOnnx(OnnxNode& node) {
  const AxisOrder order = node.ExistingOrder(0);
  const std::vector<int64_t> positions =
      PositionsOf(node.Axes("axes", node.input_rank(0)), order);
  if (positions.empty()) return ForwardToOnnx(node);
  const std::vector<int64_t> minus_one(positions.size(), -1);
  const std::vector<int64_t> to_the_begin(positions.size(), -kToTheEnd);
  node.SetOutput(
      0,
      node.Emit("Slice", {node.Input(0, order), node.Ints(minus_one),
                          node.Ints(to_the_begin), node.Ints(positions),
                          node.Ints(minus_one)}),
      order);
  return absl::OkStatus();
}

absl::Status TopKToOnnx(OnnxNode& node) {
  const bool smallest = node.Attribute<bool>("smallest");
  const std::vector<std::string> outputs = node.EmitAll(
      "TopK", {node.Input(0), node.Ints({node.Attribute<int64_t>("k")})},
      {OnnxInt("axis", -1), OnnxInt("largest", smallest ? 0 : 1),
       OnnxInt("sorted", 1)},
      2);
  node.SetOutput(0, outputs[0]);
  node.SetOutput(1, node.Emit("Cast", {outputs[1]},
                              {OnnxInt("to", OnnxDTypeOf(DType::kInt32))}));
  return absl::OkStatus();
}

absl::Status TakeAlongRowsToOnnx(OnnxNode& node) {
  node.SetOutput(0, node.Emit("GatherElements", {node.Input(0), node.Input(1)},
                              {OnnxInt("axis", -1)}));
  return absl::OkStatus();
}

}  // namespace muster
