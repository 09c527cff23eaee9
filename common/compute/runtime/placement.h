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

// Where the outputs of a node lie, and where its kernel runs.
enum class NodePlace : uint8_t { kHost, kDevice };

// Copies a value to the other place. One input, one output of the same type.
// Only placed graphs contain them.
inline constexpr absl::string_view kCopyToDeviceOp = "CopyToDevice";
inline constexpr absl::string_view kCopyToHostOp = "CopyToHost";

// Constants computed while planning stay in memory; larger ones are cheaper to
// compute again than to keep.
inline constexpr size_t kFoldedBytesMax = 64 << 10;

// True if the node gives the same whenever its inputs are the same.
bool ReadsInputsOnly(const OpSchema& schema, const Node& node);

// A typed graph with copies between host and device where a node reads a value
// of the other place.
struct PlacedGraph {
  Graph graph;
  std::vector<NodePlace> places;  // By node.
};

struct PlacementOptions {
  const OpRegistry& ops;
  const KernelRegistry& device_kernels;
  int intra_op_thread_count = 1;
  bool soft_placement = true;
  // The session of the step is of the device: VariableSessionFactory::
  // OpenDeviceSession().
  bool variables_on_device = false;
  std::string device_name;  // For messages.
};

// Places the nodes of a step that runs on a device:
//   * parameters and results on the host, where the caller has them;
//   * small values that depend on constants only, and what the other replicas
//     take part in, on the host;
//   * values of variables on the device; updates take values and indices of
//     both places where the host has the variables, and of the device
//     otherwise;
//   * everything else on the device, or if it has no kernel there, on the host.
//     A log line says so once for each op.
// Logs how many nodes are where, once for each name of a graph.
//
//   kUnimplemented  without soft placement: the device has no kernel; names the
//                   node, its op and its types
//
// Equivalent to: TensorFlow's placer with soft placement.
absl::StatusOr<PlacedGraph> PlaceNodes(const Graph& typed_graph,
                                       const PlacementOptions& options);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_PLACEMENT_H_
