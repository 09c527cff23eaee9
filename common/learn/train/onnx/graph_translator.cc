#include "common/learn/train/onnx/graph_translator.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/train/onnx/onnx_graph.h"
#include "common/learn/train/onnx/translations.h"
#include "proto/onnx.pb.h"

namespace muster {
namespace {

// Returns the order of axes that leads from a value in order `from` to the
// same value in order `to`.
AxisOrder Between(const AxisOrder& from, const AxisOrder& to) {
  AxisOrder order;
  for (const int64_t axis : to) order.push_back(PositionOf(axis, from));
  return order;
}

}  // namespace

AxisOrder InOrder(int rank) {
  AxisOrder order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

AxisOrder ChannelsFirst(int rank) {
  AxisOrder order = InOrder(rank);
  if (rank > 2) std::rotate(order.begin() + 1, order.end() - 1, order.end());
  return order;
}

int64_t PositionOf(int64_t axis, const AxisOrder& order) {
  return std::find(order.begin(), order.end(), axis) - order.begin();
}

std::vector<int64_t> PositionsOf(absl::Span<const int64_t> axes,
                                 const AxisOrder& order) {
  std::vector<int64_t> positions;
  for (const int64_t axis : axes) positions.push_back(PositionOf(axis, order));
  std::sort(positions.begin(), positions.end());
  return positions;
}

AxisOrder WithoutAxes(const AxisOrder& order, absl::Span<const int64_t> axes) {
  AxisOrder remaining;
  for (const int64_t axis : order) {
    if (std::count(axes.begin(), axes.end(), axis) > 0) continue;
    const auto removed_before = std::count_if(
        axes.begin(), axes.end(), [&](int64_t other) { return other < axis; });
    remaining.push_back(axis - removed_before);
  }
  return remaining;
}

Tensor Transposed(const Tensor& x, const AxisOrder& order) {
  const int rank = x.shape().rank();
  std::vector<int64_t> strides(rank, 1);
  for (int axis = rank - 2; axis >= 0; --axis) {
    strides[axis] = strides[axis + 1] * x.shape().dim(axis + 1);
  }
  Shape shape;
  for (const int64_t axis : order) {
    shape.AddDim(x.shape().dim(static_cast<int>(axis)));
  }
  Tensor y(x.dtype(), shape);
  const size_t size = SizeOf(x.dtype());
  std::vector<int64_t> position(rank);
  int64_t from = 0;
  for (int64_t to = 0; to < y.element_count(); ++to) {
    std::memcpy(y.mutable_raw_data() + to * size, x.raw_data() + from * size,
                size);
    for (int i = rank - 1; i >= 0; --i) {
      from += strides[order[i]];
      if (++position[i] < shape.dim(i)) break;
      from -= strides[order[i]] * position[i];
      position[i] = 0;
    }
  }
  return y;
}

GraphTranslator::GraphTranslator(const Graph* graph, OnnxGraph* target)
    : graph_(*graph), target_(*target) {
  for (const Node& node : graph_.nodes) {
    std::vector<OnnxValue>& outputs = values_.emplace_back();
    for (const TensorType& type : node.outputs) {
      outputs.push_back({.status = absl::OkStatus(), .type = type});
    }
  }
}

void GraphTranslator::Bind(int parameter, OnnxValue value) {
  value.type = graph_.nodes[graph_.parameters[parameter]].outputs[0];
  Value({graph_.parameters[parameter], 0}) = std::move(value);
}

const OnnxValue& GraphTranslator::ValueOf(NodeOutput output) const {
  return values_[output.node][output.output];
}

absl::StatusOr<std::string> GraphTranslator::NameOf(NodeOutput output) {
  return NameOf(output, InOrder(ValueOf(output).type.shape.rank()));
}

absl::StatusOr<std::string> GraphTranslator::NameOf(NodeOutput output,
                                                    const AxisOrder& order) {
  OnnxValue& value = Value(output);
  RETURN_IF_ERROR(value.status);
  if (const auto known = value.names.find(order); known != value.names.end()) {
    return known->second;
  }
  const std::string& name = graph_.nodes[output.node].name;
  std::string added;
  if (value.constant.has_value()) {
    added = target_.AddTensor(name, Transposed(*value.constant, order));
  } else if (value.names.empty()) {
    return absl::InternalError(
        absl::StrCat("the translation of node ", name, " lacks an output"));
  } else {
    const auto& [existing, existing_name] = *value.names.begin();
    added = target_
                .AddNode("Transpose", absl::StrCat(existing_name, "/Transpose"),
                         {existing_name},
                         {OnnxInts("perm", Between(existing, order))}, 1)
                .front();
  }
  value.names.emplace(order, added);
  return added;
}

void GraphTranslator::Translate() {
  for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
    TranslateNode(i);
  }
}

void GraphTranslator::TranslateNode(int index) {
  const Node& node = graph_.nodes[index];
  if (node.op == kParameterOp) return;
  if (node.op == kConstantOp) {
    auto value = node.attributes.Get<Tensor>("value");
    OnnxValue& output = Value({index, 0});
    output.status = value.status();
    if (value.ok()) output.constant = *std::move(value);
    return;
  }
  const int type_input = BuiltinOps().FindOrPlain(node.op).type_input;
  absl::Status status;
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
    if (i != type_input) status.Update(ValueOf(node.inputs[i]).status);
  }
  OnnxNode translated(this, index);
  if (status.ok()) status = TranslateToOnnx(translated);
  for (OnnxValue& output : values_[index]) output.status.Update(status);
}

std::vector<int64_t> OnnxNode::Axes(absl::string_view name, int rank) const {
  auto axes = Attribute<std::vector<int64_t>>(name);
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  return axes;
}

int64_t OnnxNode::Axis(absl::string_view name, int rank) const {
  const int64_t axis = Attribute<int64_t>(name);
  return axis < 0 ? axis + rank : axis;
}

const Tensor* OnnxNode::Constant(int i) const {
  const OnnxValue& value = input(i);
  return value.constant.has_value() ? &*value.constant : nullptr;
}

std::string OnnxNode::Input(int i, const AxisOrder& order) {
  auto name = translator_.NameOf(node().inputs[i], order);
  // TranslateNode() has checked the inputs.
  return name.ok() ? *std::move(name) : "";
}

std::string OnnxNode::Operand(int i, const AxisOrder& order) {
  const int rank = input_rank(i);
  const int missing = static_cast<int>(order.size()) - rank;
  if (missing == 0) return Input(i, order);
  const Tensor* const constant = Constant(i);
  if (rank == 0 || constant == nullptr || order == InOrder(order.size())) {
    return Input(i);
  }
  Shape shape = constant->shape();
  for (int k = 0; k < missing; ++k) shape.InsertDim(0, 1);
  return translator_.target_.AddTensor(
      translator_.graph_.nodes[node().inputs[i].node].name,
      Transposed(constant->Reshaped(shape), order));
}

AxisOrder OnnxNode::ExistingOrder(int i) const {
  const auto& names = input(i).names;
  const AxisOrder in_order = InOrder(input_rank(i));
  const AxisOrder channels_first = ChannelsFirst(input_rank(i));
  if (names.contains(channels_first)) return channels_first;
  if (names.empty() || names.contains(in_order)) return in_order;
  return names.begin()->first;
}

AxisOrder OnnxNode::OperandOrder() const {
  const int rank = output_rank();
  AxisOrder order = InOrder(rank);
  for (int i = 0; i < input_count(); ++i) {
    if (Constant(i) != nullptr || input_rank(i) == 0) continue;
    if (input_rank(i) != rank) return InOrder(rank);
    if (order == InOrder(rank)) order = ExistingOrder(i);
  }
  return order;
}

void OnnxNode::SetOutput(int i, const std::string& name,
                         const AxisOrder& order) {
  translator_.Value({index_, i}).names.insert_or_assign(order, name);
}

void OnnxNode::ForwardInput(int i) {
  OnnxValue value = input(i);
  value.type = output_type(0);
  translator_.Value({index_, 0}) = std::move(value);
}

std::vector<std::string> OnnxNode::EmitAll(
    absl::string_view op_type, absl::Span<const std::string> inputs,
    std::vector<proto::OnnxAttribute> attributes, int output_count) {
  return translator_.target_.AddNode(op_type, node().name, inputs,
                                     std::move(attributes), output_count);
}

std::string OnnxNode::Ints(absl::Span<const int64_t> values) {
  return Weight(
      Tensor::FromSpan<int64_t>({static_cast<int64_t>(values.size())}, values));
}

std::string OnnxNode::Number(double value, DType dtype) {
  return Weight(Tensor::Full(dtype, {}, value));
}

std::string OnnxNode::Weight(const Tensor& value) {
  return translator_.target_.AddTensor(absl::StrCat(node().name, "/constant"),
                                       value);
}

absl::Status OnnxNode::Refuse(absl::string_view why) const {
  const std::string& name = node().name;
  const size_t slash = name.rfind('/');
  const std::string layer =
      slash == std::string::npos
          ? ""
          : absl::StrCat(" of layer ", name.substr(0, slash));
  return absl::UnimplementedError(absl::StrCat(
      "cannot export to ONNX: op ", op(), ", node ", name, layer, ": ", why));
}

}  // namespace muster
