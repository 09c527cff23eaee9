#ifndef COMMON_COMPUTE_RUNTIME_SCAN_UNROLLING_H_
#define COMMON_COMPUTE_RUNTIME_SCAN_UNROLLING_H_

#include <cstdint>

#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"

namespace muster {

// In a typed graph, for devices: replaces each Scan by the nodes of all of its
// iterations, so that they run on the device like the rest of the step and the
// host does not run the loop. Values that are equal in all iterations are
// computed once. Inner Scans are unrolled first. Node "x" for row 3 of "loop"
// is called "loop/3/x".
//
// A Scan stays if it has no iterations, if its body contains ops of replicas,
// or if the graph would get more than `nodes_max` nodes.
void UnrollScans(Graph* typed_graph, const OpRegistry& ops, int64_t nodes_max);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_SCAN_UNROLLING_H_
