#ifndef COMMON_COMPUTE_RUNTIME_PLACEMENT_H_
#define COMMON_COMPUTE_RUNTIME_PLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"

namespace muster {

// Where a node's outputs are stored and its kernel runs.
enum class NodePlace : uint8_t { kHost, kDevice };

// Ops that copy a value to the other place. They have one input and one output
// of the same type, and occur only in placed graphs.
inline constexpr absl::string_view kCopyToDeviceOp = "CopyToDevice";
inline constexpr absl::string_view kCopyToHostOp = "CopyToHost";

// The largest constant that is computed while planning and kept. Larger ones
// are cheaper to compute again than to keep.
inline constexpr size_t kFoldedBytesMax = 64 << 10;

// True if the node's outputs are a function of its inputs alone.
bool ReadsInputsOnly(const OpSchema& schema, const Node& node);

// A typed graph with a copy between host and device for each value that a node
// reads at the other place.
struct PlacedGraph {
  Graph graph;
  std::vector<NodePlace> places;  // By node.
};

struct PlacementOptions {
  const OpRegistry& ops;
  const KernelRegistry& device_kernels;
  int intra_op_thread_count = 1;
  bool soft_placement = true;
  // True if the session of the step is one of
  // VariableSessionFactory::OpenDeviceSession().
  bool variables_on_device = false;
  std::string device_name;  // For messages.
};

// Places the nodes of a step that runs on a device as follows:
//   * parameters and results on the host, where the caller has them;
//   * on the host: small values that depend on constants only, and operations
//     in which other replicas take part;
//   * values of variables on the device; their updates take values and indices
//     of both places if the variables are on the host, and of the device
//     otherwise;
//   * everything else on the device or, if the device has no kernel for it, on
//     the host. The latter is logged once for each op.
// Logs how many nodes are at each place, once for each graph name.
//
//   kUnimplemented  without soft placement: the device has no kernel; names the
//                   node, its op and its types
//
// Equivalent to: TensorFlow's placer with soft placement.
absl::StatusOr<PlacedGraph> PlaceNodes(const Graph& typed_graph,
                                       const PlacementOptions& options);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_PLACEMENT_H_
