#ifndef COMMON_LEARN_TRAIN_ONNX_GRAPH_TRANSLATOR_H_
#define COMMON_LEARN_TRAIN_ONNX_GRAPH_TRANSLATOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/train/onnx/onnx_graph.h"
#include "proto/onnx.pb.h"

namespace muster {

// An order of the axes of a value: axis i of what is stored is axis
// permutation[i] of the value.
//
// Muster's images are [batch, height, width, channels], those of ONNX have the
// channels first. So a value exists in ONNX with its axes in one or more
// orders. A transposition is added when a node needs an order that does not
// exist yet, and none is added between two nodes that need the same order.
using AxisOrder = std::vector<int64_t>;

AxisOrder InOrder(int rank);        // 0, 1, 2, ...
AxisOrder ChannelsFirst(int rank);  // 0, rank - 1, 1, 2, ...
// Returns where `axis` is in `order`.
int64_t PositionOf(int64_t axis, const AxisOrder& order);
// Ascending.
std::vector<int64_t> PositionsOf(absl::Span<const int64_t> axes,
                                 const AxisOrder& order);
// Returns the order of the axes that remain without `axes`.
AxisOrder WithoutAxes(const AxisOrder& order, absl::Span<const int64_t> axes);
// Returns `x` with its axes in `order`.
Tensor Transposed(const Tensor& x, const AxisOrder& order);

// A value of Muster's graph in the ONNX graph.
struct OnnxValue {
  absl::Status status;  // Why there is no translation.
  TensorType type;
  std::optional<Tensor> constant;
  // The names under which it exists, by the order of its axes.
  std::map<AxisOrder, std::string> names;
};

class OnnxNode;

// Translates the nodes of a graph of Muster to nodes of ONNX. Not thread-safe.
class GraphTranslator {
 public:
  // Both are borrowed. `graph` is one of PrepareForExport(), or a subgraph of
  // one.
  GraphTranslator(const Graph* graph, OnnxGraph* target);

  // Sets the value of a parameter.
  void Bind(int parameter, OnnxValue value);

  // Translates all nodes, in their order. A node that cannot be translated is
  // an error of its outputs, and of what depends on them.
  void Translate();

  const OnnxValue& ValueOf(NodeOutput output) const;
  // Returns the name of a value with its axes in `order`; adds a constant or a
  // transposition if there is none.
  //   kUnimplemented  the value cannot be translated; names op, node and layer
  absl::StatusOr<std::string> NameOf(NodeOutput output, const AxisOrder& order);
  absl::StatusOr<std::string> NameOf(NodeOutput output);

  const Graph& graph() const { return graph_; }
  OnnxGraph& target() { return target_; }

 private:
  friend class OnnxNode;

  OnnxValue& Value(NodeOutput output) {
    return values_[output.node][output.output];
  }
  void TranslateNode(int node);

  const Graph& graph_;
  OnnxGraph& target_;
  std::vector<std::vector<OnnxValue>> values_;  // By node and output.
};

// One node while it is translated.
class OnnxNode {
 public:
  // `translator` is borrowed.
  OnnxNode(GraphTranslator* translator, int index)
      : translator_(*translator), index_(index) {}

  const Node& node() const { return translator_.graph_.nodes[index_]; }
  const std::string& op() const { return node().op; }
  int input_count() const { return static_cast<int>(node().inputs.size()); }
  int output_count() const { return static_cast<int>(node().outputs.size()); }
  const TensorType& input_type(int i) const { return input(i).type; }
  const TensorType& output_type(int i) const { return node().outputs[i]; }
  int input_rank(int i) const { return input_type(i).shape.rank(); }
  int output_rank(int i = 0) const { return output_type(i).shape.rank(); }
  template <typename T>
  T Attribute(absl::string_view name, T fallback = {}) const {
    return node().attributes.GetOr<T>(name, std::move(fallback));
  }
  // The axes in the attribute `name`, counted from the front.
  std::vector<int64_t> Axes(absl::string_view name, int rank) const;
  int64_t Axis(absl::string_view name, int rank) const;

  // The value of input `i`; null if it is not a constant.
  const Tensor* Constant(int i) const;
  // The node that computes input `i`.
  OnnxNode Producer(int i) const {
    return OnnxNode(&translator_, node().inputs[i].node);
  }

  // Returns the name of input `i`.
  std::string Input(int i) { return Input(i, InOrder(input_rank(i))); }
  std::string Input(int i, const AxisOrder& order);
  // For inputs that are broadcast to the output: returns the name of input `i`
  // for an output with its axes in `order`.
  std::string Operand(int i, const AxisOrder& order);
  // The order in which to use input `i`: one in which it exists, if possible
  // with channels first.
  AxisOrder ExistingOrder(int i) const;
  // The order in which to compute the output from inputs that are broadcast.
  AxisOrder OperandOrder() const;

  // Says what an output is.
  void SetOutput(int i, const std::string& name) {
    SetOutput(i, name, InOrder(output_rank(i)));
  }
  void SetOutput(int i, const std::string& name, const AxisOrder& order);
  // Output 0 is input `i`, up to the dtype of 16-bit floats.
  void ForwardInput(int i);

  // Adds a node, and returns the names of its outputs.
  std::vector<std::string> EmitAll(absl::string_view op_type,
                                   absl::Span<const std::string> inputs,
                                   std::vector<proto::OnnxAttribute> attributes,
                                   int output_count);
  std::string Emit(absl::string_view op_type,
                   absl::Span<const std::string> inputs,
                   std::vector<proto::OnnxAttribute> attributes = {}) {
    return EmitAll(op_type, inputs, std::move(attributes), 1).front();
  }
  // Adds constants, and returns their names: int64 [n], a scalar, any tensor.
  std::string Ints(absl::Span<const int64_t> values);
  std::string Number(double value, DType dtype);
  std::string Weight(const Tensor& value);

  // Returns the error of a node that cannot be exported.
  absl::Status Refuse(absl::string_view why) const;

  GraphTranslator& translator() { return translator_; }
  const OnnxValue& input(int i) const {
    return translator_.ValueOf(node().inputs[i]);
  }

 private:
  GraphTranslator& translator_;
  const int index_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_ONNX_GRAPH_TRANSLATOR_H_
