#ifndef COMMON_LEARN_TRAIN_ONNX_ONNX_GRAPH_H_
#define COMMON_LEARN_TRAIN_ONNX_ONNX_GRAPH_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "proto/onnx.pb.h"

namespace muster {

// Returns ONNX's number of `dtype`; UNDEFINED for strings and 16-bit floats,
// which are not exported.
proto::OnnxTensor::DataType OnnxDTypeOf(DType dtype);

// Returns the attribute `name` of a node.
proto::OnnxAttribute OnnxInt(absl::string_view name, int64_t value);
proto::OnnxAttribute OnnxFloat(absl::string_view name, double value);
proto::OnnxAttribute OnnxText(absl::string_view name, absl::string_view value);
proto::OnnxAttribute OnnxInts(absl::string_view name,
                              absl::Span<const int64_t> values);
proto::OnnxAttribute OnnxFloats(absl::string_view name,
                                absl::Span<const float> values);
proto::OnnxAttribute OnnxTexts(absl::string_view name,
                               absl::Span<const std::string> values);
proto::OnnxAttribute OnnxTensorAttribute(absl::string_view name,
                                         const Tensor& value);
proto::OnnxAttribute OnnxBody(absl::string_view name, proto::OnnxGraph graph);

// Returns the declaration of an input or output. `unknown_extents` has a name
// for each axis, for those whose extent is unknown; "" leaves an extent
// nameless.
proto::OnnxValueInfo OnnxDeclaration(
    absl::string_view name, const TensorType& type,
    absl::Span<const std::string> unknown_extents);

// An ONNX graph under construction. Values are named; a name is used once in a
// graph and the graphs inside it. Not thread-safe.
class OnnxGraph {
 public:
  explicit OnnxGraph(absl::string_view name) : outer_(nullptr) {
    message_.set_name(std::string(name));
  }
  // The body of a branch or a loop in `outer`, which is borrowed. Its nodes may
  // use the values of `outer`.
  OnnxGraph(OnnxGraph* outer, absl::string_view name) : outer_(outer) {
    message_.set_name(std::string(name));
  }
  OnnxGraph(const OnnxGraph&) = delete;
  OnnxGraph& operator=(const OnnxGraph&) = delete;

  // Returns `name`, or `name` with a number if it is in use.
  std::string UniqueName(absl::string_view name);

  // Adds a node, and returns the names of its outputs. Both are named after
  // `name`.
  std::vector<std::string> AddNode(absl::string_view op_type,
                                   absl::string_view name,
                                   absl::Span<const std::string> inputs,
                                   std::vector<proto::OnnxAttribute> attributes,
                                   int output_count);

  // Adds a constant to the outermost graph, and returns its name. Small equal
  // constants are shared.
  std::string AddTensor(absl::string_view name, const Tensor& value);

  proto::OnnxGraph& message() { return message_; }

 private:
  OnnxGraph& Outermost() {
    return outer_ == nullptr ? *this : outer_->Outermost();
  }

  OnnxGraph* const outer_;
  proto::OnnxGraph message_;
  // Of the outermost graph.
  absl::flat_hash_set<std::string> names_;
  std::map<std::pair<std::string, std::string>, std::string> shared_;
};

// Removes nodes and initializers on which no output depends.
void DropUnused(proto::OnnxGraph* graph);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_ONNX_ONNX_GRAPH_H_
