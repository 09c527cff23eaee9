#ifndef COMMON_COMPUTE_RUNTIME_REPLICA_KERNELS_H_
#define COMMON_COMPUTE_RUNTIME_REPLICA_KERNELS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/runtime/replica_link.h"

namespace muster {

// True if the types of a node in this graph depend on the row counts of all
// replicas.
bool DependsOnReplicaRows(const Graph& graph, const OpRegistry& ops);

// The attribute of a typed graph with the number of rows of each replica: for
// an AllGather, of its input; for a ReplicaPart, of the value that it is like.
inline constexpr absl::string_view kReplicaRowsAttribute = "replica_rows";

// Returns the kernel of `spec`, an op that reads other replicas, for a step
// with several replicas. `link` is borrowed and outlives the kernel.
//   kInvalidArgument  the spec is invalid
absl::StatusOr<std::unique_ptr<Kernel>> MakeReplicaKernel(
    const KernelSpec& spec, absl::string_view node_name, ReplicaLink* link);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_REPLICA_KERNELS_H_
