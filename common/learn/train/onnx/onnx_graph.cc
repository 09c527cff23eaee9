#include "common/learn/train/onnx/onnx_graph.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "proto/onnx.pb.h"

namespace muster {
namespace {

using proto::OnnxAttribute;
using proto::OnnxTensor;

// Axes, shapes and numbers; larger constants are weights.
constexpr size_t kSharedBytesMax = 128;

OnnxAttribute TypedAttribute(absl::string_view name, OnnxAttribute::Type type) {
  OnnxAttribute attribute;
  attribute.set_name(std::string(name));
  attribute.set_type(type);
  return attribute;
}

std::string BytesOf(const Tensor& value) {
  return std::string(reinterpret_cast<const char*>(value.raw_data()),
                     value.size_bytes());
}

OnnxTensor Encoded(absl::string_view name, const Tensor& value) {
  OnnxTensor tensor;
  for (const int64_t dim : value.shape().dims()) tensor.add_dims(dim);
  tensor.set_data_type(OnnxDTypeOf(value.dtype()));
  if (!name.empty()) tensor.set_name(std::string(name));
  tensor.set_raw_data(BytesOf(value));
  return tensor;
}

// Adds what the nodes use, those of inner graphs included.
void AddUses(const proto::OnnxNode& node,
             absl::flat_hash_set<std::string>* used) {
  used->insert(node.input().begin(), node.input().end());
  for (const OnnxAttribute& attribute : node.attribute()) {
    if (!attribute.has_g()) continue;
    for (const auto& inner : attribute.g().node()) AddUses(inner, used);
    for (const auto& output : attribute.g().output()) {
      used->insert(output.name());
    }
  }
}

}  // namespace

OnnxTensor::DataType OnnxDTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return OnnxTensor::FLOAT;
    case DType::kFloat64:
      return OnnxTensor::DOUBLE;
    case DType::kInt32:
      return OnnxTensor::INT32;
    case DType::kInt64:
      return OnnxTensor::INT64;
    case DType::kUint8:
      return OnnxTensor::UINT8;
    case DType::kBool:
      return OnnxTensor::BOOL;
    case DType::kBfloat16:
    case DType::kFloat16:
    case DType::kString:
    case DType::kInvalid:
      break;
  }
  return OnnxTensor::UNDEFINED;
}

OnnxAttribute OnnxInt(absl::string_view name, int64_t value) {
  OnnxAttribute attribute = TypedAttribute(name, OnnxAttribute::INT);
  attribute.set_i(value);
  return attribute;
}

OnnxAttribute OnnxFloat(absl::string_view name, double value) {
  OnnxAttribute attribute = TypedAttribute(name, OnnxAttribute::FLOAT);
  attribute.set_f(static_cast<float>(value));
  return attribute;
}

OnnxAttribute OnnxText(absl::string_view name, absl::string_view value) {
  OnnxAttribute attribute = TypedAttribute(name, OnnxAttribute::STRING);
  attribute.set_s(std::string(value));
  return attribute;
}

OnnxAttribute OnnxInts(absl::string_view name,
                       absl::Span<const int64_t> values) {
  OnnxAttribute attribute = TypedAttribute(name, OnnxAttribute::INTS);
  attribute.mutable_ints()->Add(values.begin(), values.end());
  return attribute;
}

OnnxAttribute OnnxFloats(absl::string_view name,
                         absl::Span<const float> values) {
  OnnxAttribute attribute = TypedAttribute(name, OnnxAttribute::FLOATS);
  attribute.mutable_floats()->Add(values.begin(), values.end());
  return attribute;
}

OnnxAttribute OnnxTexts(absl::string_view name,
                        absl::Span<const std::string> values) {
  OnnxAttribute attribute = TypedAttribute(name, OnnxAttribute::STRINGS);
  attribute.mutable_strings()->Add(values.begin(), values.end());
  return attribute;
}

OnnxAttribute OnnxTensorAttribute(absl::string_view name, const Tensor& value) {
  OnnxAttribute attribute = TypedAttribute(name, OnnxAttribute::TENSOR);
  *attribute.mutable_t() = Encoded("", value);
  return attribute;
}

OnnxAttribute OnnxBody(absl::string_view name, proto::OnnxGraph graph) {
  OnnxAttribute attribute = TypedAttribute(name, OnnxAttribute::GRAPH);
  *attribute.mutable_g() = std::move(graph);
  return attribute;
}

proto::OnnxValueInfo OnnxDeclaration(
    absl::string_view name, const TensorType& type,
    absl::Span<const std::string> unknown_extents) {
  proto::OnnxValueInfo declaration;
  declaration.set_name(std::string(name));
  auto& tensor = *declaration.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(OnnxDTypeOf(type.dtype));
  proto::OnnxShape& shape = *tensor.mutable_shape();
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    proto::OnnxShape::Dim& dim = *shape.add_dim();
    if (type.shape.dim(axis) != Shape::kUnknown) {
      dim.set_dim_value(type.shape.dim(axis));
    } else if (!unknown_extents[axis].empty()) {
      dim.set_dim_param(unknown_extents[axis]);
    }
  }
  return declaration;
}

std::string OnnxGraph::UniqueName(absl::string_view name) {
  auto& names = Outermost().names_;
  std::string unique(name);
  for (int i = 1; !names.insert(unique).second; ++i) {
    unique = absl::StrCat(name, "_", i);
  }
  return unique;
}

std::vector<std::string> OnnxGraph::AddNode(
    absl::string_view op_type, absl::string_view name,
    absl::Span<const std::string> inputs,
    std::vector<proto::OnnxAttribute> attributes, int output_count) {
  proto::OnnxNode& node = *message_.add_node();
  node.set_name(UniqueName(name));
  node.set_op_type(std::string(op_type));
  for (const std::string& input : inputs) node.add_input(input);
  for (proto::OnnxAttribute& attribute : attributes) {
    *node.add_attribute() = std::move(attribute);
  }
  // Names of nodes and of values are separate in ONNX.
  std::vector<std::string> outputs = {node.name()};
  for (int i = 1; i < output_count; ++i) {
    outputs.push_back(UniqueName(absl::StrCat(node.name(), ":", i)));
  }
  for (const std::string& output : outputs) node.add_output(output);
  return outputs;
}

std::string OnnxGraph::AddTensor(absl::string_view name, const Tensor& value) {
  OnnxGraph& outermost = Outermost();
  const auto add = [&] {
    std::string unique = UniqueName(name);
    *outermost.message_.add_initializer() = Encoded(unique, value);
    return unique;
  };
  if (value.size_bytes() > kSharedBytesMax) return add();
  std::string& shared =
      outermost.shared_[{value.type().ToString(), BytesOf(value)}];
  if (shared.empty()) shared = add();
  return shared;
}

void DropUnused(proto::OnnxGraph* graph) {
  absl::flat_hash_set<std::string> used;
  for (const auto& output : graph->output()) used.insert(output.name());
  std::vector<bool> is_used(graph->node_size());
  for (int i = graph->node_size() - 1; i >= 0; --i) {
    const proto::OnnxNode& node = graph->node(i);
    for (const std::string& output : node.output()) {
      is_used[i] = is_used[i] || used.contains(output);
    }
    if (is_used[i]) AddUses(node, &used);
  }
  int node_count = 0;
  for (int i = 0; i < graph->node_size(); ++i) {
    if (is_used[i]) graph->mutable_node()->SwapElements(node_count++, i);
  }
  graph->mutable_node()->DeleteSubrange(node_count,
                                        graph->node_size() - node_count);
  int initializer_count = 0;
  for (int i = 0; i < graph->initializer_size(); ++i) {
    if (!used.contains(graph->initializer(i).name())) continue;
    graph->mutable_initializer()->SwapElements(initializer_count++, i);
  }
  graph->mutable_initializer()->DeleteSubrange(
      initializer_count, graph->initializer_size() - initializer_count);
}

}  // namespace muster
