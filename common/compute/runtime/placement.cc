#include "common/compute/runtime/placement.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/runtime/typed_graph.h"
#include "common/compute/runtime/variable_uses.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

// True if this is the first call of the process with these arguments.
bool IsFirstReport(const std::string& what, const std::string& device) {
  static absl::Mutex mutex;
  static auto* const told = new std::set<std::pair<std::string, std::string>>;
  const absl::MutexLock lock(&mutex);
  return told->emplace(what, device).second;
}

void LogSoftPlacement(const std::string& op, const std::string& device) {
  if (!IsFirstReport(absl::StrCat("op ", op), device)) return;
  LOG(INFO) << device << " has no kernel for " << op
            << ": it runs on the host, which waits for the device and copies "
               "the operands";
}

void LogPlaces(const PlacedGraph& placed, const std::string& device) {
  const std::string& name = placed.graph.name;
  if (!IsFirstReport(absl::StrCat("graph ", name), device)) return;
  const int64_t count = std::count(placed.places.begin(), placed.places.end(),
                                   NodePlace::kDevice);
  LOG(INFO) << "graph \"" << name << "\": " << count << " nodes on " << device
            << ", " << placed.places.size() - count << " on the host";
}

class Placer {
 public:
  Placer(const Graph& graph, const PlacementOptions& options)
      : graph_(graph), options_(options) {}

  absl::StatusOr<PlacedGraph> Place() {
    placed_.graph.name = graph_.name;
    for (const Node& node : graph_.nodes) RETURN_IF_ERROR(PlaceNode(node));
    for (const int parameter : graph_.parameters) {
      placed_.graph.parameters.push_back(positions_[parameter]);
    }
    for (const NodeOutput& result : graph_.results) {
      placed_.graph.results.push_back(ValueAt(result, NodePlace::kHost));
    }
    return std::move(placed_);
  }

 private:
  absl::Status PlaceNode(const Node& node) {
    const OpSchema& schema = options_.ops.FindOrPlain(node.op);
    const bool is_constant = IsConstant(schema, node);
    ASSIGN_OR_RETURN(const NodePlace place,
                     ChoosePlace(schema, node, is_constant));
    Node placed = node;
    for (NodeOutput& input : placed.inputs) {
      const bool takes_both_places =
          schema.is_view ||
          (schema.uses_variable() && !options_.variables_on_device);
      input = takes_both_places
                  ? NodeOutput{positions_[input.node], input.output}
                  : ValueAt(input, place);
    }
    for (int& input : placed.control_inputs) input = positions_[input];
    positions_.push_back(Append(std::move(placed), place));
    is_constant_.push_back(is_constant);
    return absl::OkStatus();
  }

  // True if the value is computed while planning.
  bool IsConstant(const OpSchema& schema, const Node& node) const {
    if (node.op == kConstantOp) return true;
    if (node.inputs.empty() && !schema.has_kernel()) return false;
    for (const NodeOutput& input : node.inputs) {
      if (!is_constant_[input.node]) return false;
    }
    if (schema.is_view) return true;
    size_t output_bytes = 0;
    for (const TensorType& type : node.outputs) {
      output_bytes += type.shape.element_count() * SizeOf(type.dtype);
    }
    return schema.has_kernel() && ReadsInputsOnly(schema, node) &&
           output_bytes <= kFoldedBytesMax;
  }

  absl::StatusOr<NodePlace> ChoosePlace(const OpSchema& schema,
                                        const Node& node,
                                        bool is_constant) const {
    if (schema.is_view) {
      return placed_.places[positions_[node.inputs[0].node]];
    }
    if (schema.uses_variable()) return NodePlace::kDevice;
    if (is_constant || !schema.has_kernel() ||
        schema.reads == OpReads::kReplicas) {
      return NodePlace::kHost;
    }
    const absl::Status supported = options_.device_kernels
                                       .Create(SpecOf(graph_, node, schema),
                                               options_.intra_op_thread_count)
                                       .status();
    if (supported.ok()) return NodePlace::kDevice;
    if (!absl::IsUnimplemented(supported) || !options_.soft_placement) {
      return absl::Status(
          supported.code(),
          absl::StrCat(node.op, " \"", node.name, "\" on ",
                       options_.device_name, ": ", supported.message(),
                       absl::IsUnimplemented(supported)
                           ? "; soft placement would run it on the host"
                           : ""));
    }
    LogSoftPlacement(node.op, options_.device_name);
    return NodePlace::kHost;
  }

  int Append(Node node, NodePlace place) {
    placed_.graph.nodes.push_back(std::move(node));
    placed_.places.push_back(place);
    return static_cast<int>(placed_.places.size()) - 1;
  }

  // Returns the placed copy, at `place`, of a value of the unplaced graph.
  NodeOutput ValueAt(NodeOutput value, NodePlace place) {
    return CopyAt({positions_[value.node], value.output}, place);
  }

  NodeOutput CopyAt(NodeOutput source, NodePlace place) {
    if (placed_.places[source.node] == place) return source;
    const std::pair<int, int> key = {source.node, source.output};
    if (const auto found = copies_.find(key); found != copies_.end()) {
      return found->second;
    }
    const bool is_to_host = place == NodePlace::kHost;
    const Node node = placed_.graph.nodes[source.node];
    Node made;
    if (options_.ops.FindOrPlain(node.op).is_view) {
      // A value and all of its views share one copy.
      made = node;
      made.inputs[0] = CopyAt(node.inputs[0], place);
    } else {
      made.op = std::string(is_to_host ? kCopyToHostOp : kCopyToDeviceOp);
      made.inputs = {source};
      made.outputs = {node.outputs[source.output]};
    }
    made.name = absl::StrCat(node.name, "/output_", source.output,
                             is_to_host ? "/on_host" : "/on_device");
    const NodeOutput copy = {Append(std::move(made), place), 0};
    copies_[key] = copy;
    return copy;
  }

  const Graph& graph_;
  const PlacementOptions& options_;
  PlacedGraph placed_;
  // By node of the unplaced graph: its position in the placed graph.
  std::vector<int> positions_;
  std::vector<bool> is_constant_;
  std::map<std::pair<int, int>, NodeOutput> copies_;  // By placed value.
};

}  // namespace

bool ReadsInputsOnly(const OpSchema& schema, const Node& node) {
  // A subgraph may read the positions of rows.
  if (!node.subgraphs.empty()) return false;
  return schema.reads == OpReads::kInputsOnly ||
         (schema.reads == OpReads::kBatchRows && node.inputs.size() == 1);
}

absl::StatusOr<PlacedGraph> PlaceNodes(const Graph& typed_graph,
                                       const PlacementOptions& options) {
  ASSIGN_OR_RETURN(PlacedGraph placed, Placer(typed_graph, options).Place());
  LogPlaces(placed, options.device_name);
  return placed;
}

}  // namespace muster
