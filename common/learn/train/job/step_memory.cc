#include "common/learn/train/job/step_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/runtime/typed_graph.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/base/layer_optimizers.h"

namespace muster {
namespace {

int64_t BytesOf(const TensorType& type) {
  return type.shape.element_count() * static_cast<int64_t>(SizeOf(type.dtype));
}

absl::StatusOr<int64_t> SlotBytes(const Weight& weight,
                                  const ModelOptimizers& optimizers) {
  ASSIGN_OR_RETURN(const std::unique_ptr<UpdateRule> rule,
                   UpdateRule::Create(optimizers.Of(weight.name())));
  const TensorType& type = weight.handle().type;
  const auto own = rule->ForVariable(weight.name(), type.shape);
  int64_t bytes = 0;
  for (const SlotSpec& slot : (own == nullptr ? *rule : *own).slots()) {
    bytes += BytesOf({type.dtype, slot.shape.value_or(type.shape)});
  }
  return bytes;
}

bool IsView(const Node& node) {
  return BuiltinOps().FindOrPlain(node.op).is_view;
}

// The index of the last node that uses each node's outputs: its own if none
// does, and that of the last node if they are results.
std::vector<size_t> LastUses(const Graph& graph) {
  std::vector<size_t> last_uses(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    last_uses[i] = std::max(last_uses[i], i);
    for (const NodeOutput& input : graph.nodes[i].inputs) {
      last_uses[input.node] = std::max(last_uses[input.node], i);
    }
  }
  for (const NodeOutput& result : graph.results) {
    last_uses[result.node] = graph.nodes.size() - 1;
  }
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    if (!IsView(graph.nodes[i])) continue;
    size_t& viewed = last_uses[graph.nodes[i].inputs.front().node];
    viewed = std::max(viewed, last_uses[i]);
  }
  return last_uses;
}

// True if the node's outputs are values of their own: neither a variable's nor
// another name for an input.
bool OwnsOutputs(const Node& node) {
  return !node.attributes.Has(kVariableAttribute) && !IsView(node);
}

}  // namespace

absl::StatusOr<VariableMemory> MeasureVariables(
    absl::Span<const Weight> weights, const ModelOptimizers& optimizers) {
  VariableMemory memory;
  for (const Weight& weight : weights) {
    const int64_t bytes = BytesOf(weight.handle().type);
    memory.weight_bytes += bytes;
    if (!weight.trainable()) continue;
    memory.trainable_bytes += bytes;
    ASSIGN_OR_RETURN(const int64_t slot_bytes, SlotBytes(weight, optimizers));
    memory.slot_bytes += slot_bytes;
  }
  return memory;
}

absl::StatusOr<int64_t> MeasureStep(const Graph& graph,
                                    const std::vector<TensorType>& parameters) {
  ASSIGN_OR_RETURN(
      const Graph typed,
      WithTypes(graph, BuiltinOps(), absl::MakeConstSpan(&parameters, 1),
                /*replica=*/0));
  const std::vector<size_t> last_uses = LastUses(typed);
  std::vector<int64_t> freed_bytes(typed.nodes.size() + 1);
  int64_t bytes = 0;
  int64_t bytes_max = 0;
  for (size_t i = 0; i < typed.nodes.size(); ++i) {
    if (OwnsOutputs(typed.nodes[i])) {
      int64_t added = 0;
      for (const TensorType& type : typed.nodes[i].outputs) {
        added += BytesOf(type);
      }
      bytes += added;
      freed_bytes[last_uses[i]] += added;
    }
    bytes_max = std::max(bytes_max, bytes);
    bytes -= freed_bytes[i];
  }
  return bytes_max;
}

}  // namespace muster
