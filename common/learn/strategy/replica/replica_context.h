#ifndef COMMON_LEARN_STRATEGY_REPLICA_REPLICA_CONTEXT_H_
#define COMMON_LEARN_STRATEGY_REPLICA_REPLICA_CONTEXT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/net/collectives/reduce_op.h"

namespace muster {

// In a traced step: the replica that will run it, among the synchronous
// replicas. All replicas run the same graph, so a property that differs between
// them is a Value. A step that is scheduled on a worker of parameter-server
// training is its only replica: reductions then return their arguments.
//
// Equivalent to: tf.distribute.ReplicaContext; MergeCall() is not needed.
class ReplicaContext {
 public:
  // `builder` is borrowed.
  explicit ReplicaContext(GraphBuilder* builder, int num_replicas_in_sync = 1)
      : builder_(builder), num_replicas_in_sync_(num_replicas_in_sync) {}

  GraphBuilder& builder() const { return *builder_; }
  int num_replicas_in_sync() const { return num_replicas_in_sync_; }
  // Returns the index of the replica, an int32 scalar from 0.
  Value replica_id_in_sync_group() const;

  // Reduces the values of all replicas; see AllReduce() in
  // common/compute/ops/replica_ops.h.
  Value AllReduce(ReduceOp op, Value value) const;
  std::vector<Value> AllReduce(ReduceOp op,
                               absl::Span<const Value> values) const;

  // Concatenates the values of all replicas along `axis`, where their extents
  // may differ.
  Value AllGather(Value value, int64_t axis) const;

 private:
  GraphBuilder* const builder_;
  const int num_replicas_in_sync_;
};

// Marks the current thread as tracing the code of a replica while this object
// exists.
class ReplicaTracingScope {
 public:
  ReplicaTracingScope();
  ~ReplicaTracingScope();
  ReplicaTracingScope(const ReplicaTracingScope&) = delete;
  ReplicaTracingScope& operator=(const ReplicaTracingScope&) = delete;
};

// Returns OK if `call`, which applies to all replicas at once, is allowed here.
//   kFailedPrecondition  this thread traces the code of one replica; names
//                        `instead`, the function to use there
absl::Status CheckCrossReplica(absl::string_view call,
                               absl::string_view instead);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_REPLICA_REPLICA_CONTEXT_H_
