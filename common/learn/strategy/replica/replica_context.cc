#include "common/learn/strategy/replica/replica_context.h"

#include "absl/strings/str_cat.h"
#include "common/compute/ops/replica_ops.h"

namespace muster {
namespace {

thread_local int tracing_depth = 0;

}  // namespace

Value ReplicaContext::replica_id_in_sync_group() const {
  return ReplicaId(*builder_);
}

Value ReplicaContext::AllReduce(ReduceOp op, Value value) const {
  return muster::AllReduce(value, ReduceOpName(op));
}

std::vector<Value> ReplicaContext::AllReduce(
    ReduceOp op, absl::Span<const Value> values) const {
  std::vector<Value> reduced;
  reduced.reserve(values.size());
  for (const Value& value : values) reduced.push_back(AllReduce(op, value));
  return reduced;
}

Value ReplicaContext::AllGather(Value value, int64_t axis) const {
  return muster::AllGather(value, axis);
}

ReplicaTracingScope::ReplicaTracingScope() { ++tracing_depth; }
ReplicaTracingScope::~ReplicaTracingScope() { --tracing_depth; }

absl::Status CheckCrossReplica(absl::string_view call,
                               absl::string_view instead) {
  if (tracing_depth == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      call,
      " speaks to all replicas, and was called in the code of one, "
      "inside of Run; ",
      instead));
}

}  // namespace muster
