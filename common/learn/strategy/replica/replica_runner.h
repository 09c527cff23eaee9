#ifndef COMMON_LEARN_STRATEGY_REPLICA_REPLICA_RUNNER_H_
#define COMMON_LEARN_STRATEGY_REPLICA_REPLICA_RUNNER_H_

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/replica_variables.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/communication_options.h"
#include "common/learn/strategy/cross_device/distributed_values.h"
#include "common/learn/strategy/input/replica_batch.h"
#include "common/learn/strategy/replica/step_function.h"
#include "common/learn/strategy/replica_devices.h"
#include "common/learn/strategy/synchronous/mirrored_variable_store.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/learn/strategy/synchronous/replica_step.h"

namespace muster {

// Runs step functions on the replicas of this process, synchronously with those
// of other processes, on given arguments: for custom loops. A function is
// traced once for each combination of argument types.
//
// Thread-safe; calls run one after another.
class ReplicaRunner {
 public:
  struct Options {
    int intra_op_thread_count = 1;
    ReplicaDevices devices = {};
    CommunicationOptions communication;
    bool overlaps_communication = false;
    // The number of compiled functions in the cache; the least recently used
    // one is evicted. Must be equal on all workers.
    int function_count_max = 64;
  };

  // The arguments for the replicas of this process.
  struct Call {
    // The types for which the function is traced.
    std::vector<TensorType> types;
    std::vector<Element> arguments;        // By replica.
    std::vector<bool> has_data;            // By replica.
    std::vector<int64_t> example_offsets;  // By replica.
  };

  // All pointers are borrowed. `single` holds the variables of the only replica
  // if `mirrored` is null.
  ReplicaRunner(ReplicaGroup* group, MirroredVariableStore* mirrored,
                ReplicaVariables* single, const Options& options);

  // Returns the results of the function, each by replica.
  //   as StepFunction::TraceFor(), Executable and ReplicaStep; after an error
  //   the replicas are reset to the variables of replica 0
  absl::StatusOr<std::vector<PerReplica>> Run(const StepFunction& step,
                                              const Call& call)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Replica {
    std::unique_ptr<ReplicaStep> step;
    std::unique_ptr<Executable> executable;  // Declared before its session.
    std::vector<Tensor> results;
  };
  struct Compiled {
    // Keeps the function alive, so that its id is not reused.
    StepFunction function;
    std::vector<TensorType> types;
    std::vector<Replica> replicas;
  };

  absl::Status Prepare() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Compiled*> FindCompiled(const StepFunction& step,
                                         absl::Span<const TensorType> types)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Compiled> Compile(const StepFunction& step,
                                   absl::Span<const TensorType> types)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Replica> CompileReplica(const Graph& graph, int replica) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ReplicaGroup* const group_;
  MirroredVariableStore* const mirrored_;
  ReplicaVariables* const single_;
  const Options options_;

  absl::Mutex mutex_;
  // The communicators that compiled_ uses; kept alive even if the group is
  // recreated.
  ReplicaGroup::Communicators communicators_ ABSL_GUARDED_BY(mutex_);
  // Most recently used first.
  std::list<Compiled> compiled_ ABSL_GUARDED_BY(mutex_);
  uint64_t run_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Releases the communicators before the group is formed again. Null without a
  // group that survives losses.
  std::unique_ptr<ReplicaGroup::User> user_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_REPLICA_REPLICA_RUNNER_H_
