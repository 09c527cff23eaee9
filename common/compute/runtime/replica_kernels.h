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

// True if the rows of all replicas decide what types a node of this graph has.
bool DependsOnReplicaRows(const Graph& graph, const OpRegistry& ops);

// The attribute by which a typed graph says how many rows each replica has: of
// the input of an AllGather, of what a ReplicaPart is like.
inline constexpr absl::string_view kReplicaRowsAttribute = "replica_rows";

// The kernel of `spec`, an op that reads other replicas, where there are other
// replicas. `link` is borrowed and outlives it.
//   kInvalidArgument  the spec is invalid
absl::StatusOr<std::unique_ptr<Kernel>> MakeReplicaKernel(
    const KernelSpec& spec, absl::string_view node_name, ReplicaLink* link);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_REPLICA_KERNELS_H_
