#ifndef COMMON_COMPUTE_OPS_REPLICA_OPS_H_
#define COMMON_COMPUTE_OPS_REPLICA_OPS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"

// What one replica of a step knows of the others. All replicas run the same
// graph, and so take part in the same collectives in the same order; a step
// that runs alone is its only replica.
namespace muster {

// int32 scalars: 0 to ReplicaCount() - 1, in the order in which values are
// gathered, and how many replicas there are.
Value ReplicaId(GraphBuilder& builder);
Value ReplicaCount(GraphBuilder& builder);

// What the `x` of all replicas make together: `reduction` is "sum", "mean"
// (integers are divided towards zero), "min", "max" or "prod". `x` has one
// shape in all of them, and is of any number dtype but uint8.
//
// The gradients of sum and mean are reduced in the same way: where each replica
// has a loss of its own, what is differentiated is the loss of all. The others
// have no gradient, and to ask for one is a mistake.
//
// Equivalent to: tf.distribute.ReplicaContext.all_reduce.
Value AllReduce(Value x, absl::string_view reduction);

// The `x` of all replicas, one after another along `axis`, which may be
// negative; there the extents may differ, 0 among them. Any dtype but string.
//
// Equivalent to: tf.distribute.ReplicaContext.all_gather.
Value AllGather(Value x, int64_t axis);

// Of `whole`, as AllGather(x, 0) makes it, the rows of this replica, when each
// replica has as many as its `like`.
Value ReplicaPart(Value whole, Value like);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_REPLICA_OPS_H_
