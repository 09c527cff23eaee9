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

// In a traced step: the replica that will run it, among those that run it in
// sync. All of them run the same graph, so what differs between them is a
// Value. A step that is scheduled on a worker of parameter-server training is
// its only replica: there, reductions give back what they take.
//
// Equivalent to: tf.distribute.ReplicaContext; MergeCall() is not needed.
class ReplicaContext {
 public:
  // `builder` is borrowed.
  explicit ReplicaContext(GraphBuilder* builder, int num_replicas_in_sync = 1)
      : builder_(builder), num_replicas_in_sync_(num_replicas_in_sync) {}

  GraphBuilder& builder() const { return *builder_; }
  int num_replicas_in_sync() const { return num_replicas_in_sync_; }
  // An int32 scalar from 0 on.
  Value replica_id_in_sync_group() const;

  // What the values of all replicas make together; see AllReduce() in
  // common/compute/ops/replica_ops.h.
  Value AllReduce(ReduceOp op, Value value) const;
  std::vector<Value> AllReduce(ReduceOp op,
                               absl::Span<const Value> values) const;

  // The values of all replicas one after another along `axis`, where their
  // extents may differ.
  Value AllGather(Value value, int64_t axis) const;

 private:
  GraphBuilder* const builder_;
  const int num_replicas_in_sync_;
};

// While this lives, its thread traces the code of a replica.
class ReplicaTracingScope {
 public:
  ReplicaTracingScope();
  ~ReplicaTracingScope();
  ReplicaTracingScope(const ReplicaTracingScope&) = delete;
  ReplicaTracingScope& operator=(const ReplicaTracingScope&) = delete;
};

// OK where `call` speaks to all replicas at once.
//   kFailedPrecondition  this thread traces the code of one replica; says what
//                        to use there, `instead`
absl::Status CheckCrossReplica(absl::string_view call,
                               absl::string_view instead);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_REPLICA_REPLICA_CONTEXT_H_
