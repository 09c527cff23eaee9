#ifndef COMMON_COMPUTE_OPS_REPLICA_OPS_H_
#define COMMON_COMPUTE_OPS_REPLICA_OPS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"

// Ops between the replicas of a step. All replicas run the same graph, and
// therefore call the same collectives in the same order. A step that runs alone
// is the only replica.
namespace muster {

// int32 scalars: this replica's index, 0 to ReplicaCount() - 1, in the order in
// which values are gathered; and the number of replicas.
Value ReplicaId(GraphBuilder& builder);
Value ReplicaCount(GraphBuilder& builder);

// Reduces the `x` of all replicas. `reduction` is "sum", "mean" (integers are
// rounded towards zero), "min", "max" or "prod". `x` has the same shape on all
// replicas and any number dtype but uint8.
//
// The gradients of sum and mean are reduced in the same way, which
// differentiates the sum of the losses of all replicas. After
// SetLossDenominator() each gradient is weighted by the number of examples of
// its replica, which differentiates the mean over all examples. Differentiating
// the other reductions is an error.
//
// Equivalent to: tf.distribute.ReplicaContext.all_reduce.
Value AllReduce(Value x, absl::string_view reduction);

// Concatenates the `x` of all replicas along `axis`, which may be negative.
// Extents along `axis` may differ and may be 0. Any dtype but string. The
// gradient is that of AllReduce() with "sum".
//
// Equivalent to: tf.distribute.ReplicaContext.all_gather.
Value AllGather(Value x, int64_t axis);

// Returns this replica's rows of `whole`, the result of AllGather(x, 0). Each
// replica has as many rows as its `like`.
Value ReplicaPart(Value whole, Value like);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_REPLICA_OPS_H_
