#include "common/compute/runtime/argument_uses.h"

#include <cstdint>

#include "common/compute/runtime/placement.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

using Use = StepArguments::Use;

bool MayUpload(const TensorType& type) {
  return type.dtype != DType::kString &&
         type.shape.element_count() *
                 static_cast<int64_t>(SizeOf(type.dtype)) >=
             StepArguments::kUploadBytesMin;
}

}  // namespace

std::vector<Use> UsesOfArguments(const Graph& typed_graph,
                                 const OpRegistry& ops) {
  std::vector<Use> uses(typed_graph.parameters.size(), Use::kNone);
  // For each node: the argument that its output is or is a view of, or -1.
  std::vector<int> argument_of(typed_graph.nodes.size(), -1);
  for (size_t i = 0; i < typed_graph.parameters.size(); ++i) {
    argument_of[typed_graph.parameters[i]] = static_cast<int>(i);
  }
  for (size_t i = 0; i < typed_graph.nodes.size(); ++i) {
    const Node& node = typed_graph.nodes[i];
    for (const NodeOutput& input : node.inputs) {
      const int argument = argument_of[input.node];
      if (argument < 0) continue;
      if (ops.FindOrPlain(node.op).is_view) {
        argument_of[i] = argument;
      } else if (node.op != kCopyToDeviceOp) {
        uses[argument] = Use::kHost;
      } else if (uses[argument] == Use::kNone) {
        uses[argument] =
            MayUpload(typed_graph.TypeOf(input)) ? Use::kUpload : Use::kHost;
      }
    }
  }
  for (const NodeOutput& result : typed_graph.results) {
    const int argument = argument_of[result.node];
    if (argument >= 0) uses[argument] = Use::kHost;
  }
  return uses;
}

}  // namespace muster
