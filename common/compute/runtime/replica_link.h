#ifndef COMMON_COMPUTE_RUNTIME_REPLICA_LINK_H_
#define COMMON_COMPUTE_RUNTIME_REPLICA_LINK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/reduce_op.h"

namespace muster {

// Connects a step to the other replicas that run it synchronously: implements
// AllReduce, AllGather and ReplicaId of a graph.
//
// Replicas run the same graph and make calls in the same order. The order
// includes the updates passed to a VariableSession, so a session and a link may
// share a group if they preserve it. After an error the replicas are no longer
// synchronized: the owner of the group ends it, which wakes the replicas that
// still wait.
//
// Calls wait for the other replicas until the link's deadline. Errors are those
// of Communicator and name the missing replicas and `name`, the name of the
// node. Not thread-safe.
class ReplicaLink {
 public:
  virtual ~ReplicaLink() = default;

  // In [0, replica_count()), constant over the lifetime of the link.
  virtual int replica_id() const = 0;
  virtual int replica_count() const = 0;

  // Replaces `value` on every replica with the reduction over all replicas.
  virtual absl::Status AllReduce(ReduceOp op, Tensor* value,
                                 absl::string_view name) = 0;

  // Sets `gathered` to the elements of all replicas' `value`s, in replica
  // order; replica r has element_counts[r] of them. `gathered` has that many
  // elements in total and shares no memory with `value`.
  virtual absl::Status AllGather(const Tensor& value,
                                 absl::Span<const int64_t> element_counts,
                                 Tensor* gathered, absl::string_view name) = 0;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_REPLICA_LINK_H_
