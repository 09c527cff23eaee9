#ifndef COMMON_LEARN_STRATEGY_REPLICA_REPLICA_OPERATIONS_H_
#define COMMON_LEARN_STRATEGY_REPLICA_REPLICA_OPERATIONS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/variables/replica_variables.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/cross_device/cross_device_ops.h"
#include "common/learn/strategy/cross_device/distributed_values.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/strategy/replica/replica_runner.h"
#include "common/learn/strategy/replica/step_function.h"
#include "common/learn/strategy/synchronous/mirrored_variable_store.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/net/collectives/reduce_op.h"

namespace muster {

// The interface of strategies with synchronous replicas for custom loops:
//
//   ASSIGN_OR_RETURN(auto data, strategy->DistributeDataset(dataset));
//   ASSIGN_OR_RETURN(auto iterator, data.MakeIterator());
//   std::vector<ReplicaBatch> batch;
//   while (true) {
//     ASSIGN_OR_RETURN(const bool has_data, iterator->Next(&batch));
//     if (!has_data) break;
//     ASSIGN_OR_RETURN(auto losses, strategy->Run(step, batch));
//     ASSIGN_OR_RETURN(Tensor loss,
//                      strategy->Reduce(ReduceOp::kSum, losses[0]));
//   }
//
// If there are several workers, every one makes the same calls in the same
// order, with arguments of the same types. Values are reduced and gathered over
// all workers, and results are equal on all of them.
//
// All calls apply to all replicas at once. Inside a step function, which is the
// code of one replica, they return kFailedPrecondition; use ReplicaContext
// there.
//
// Equivalent to: the methods of tf.distribute.Strategy. Thread-safe, as long as
// calls that communicate are made in the same order on all workers.
class ReplicaOperations {
 public:
  struct Options {
    ReplicaRunner::Options runner;
    InputOptions input;
    // Null means ReductionToOneDevice().
    std::shared_ptr<const CrossDeviceOps> cross_device_ops = nullptr;
  };

  // As ReplicaRunner.
  ReplicaOperations(ReplicaGroup* group, MirroredVariableStore* mirrored,
                    ReplicaVariables* single, Options options);

  ReplicaOperations(const ReplicaOperations&) = delete;
  ReplicaOperations& operator=(const ReplicaOperations&) = delete;

  // Runs `step` once on every replica, and returns its results, each by
  // replica. Each replica gets its part of PerReplica arguments. All replicas
  // get the other arguments unchanged.
  //   kInvalidArgument  a PerReplica does not have one value for each replica
  //                     of this process, or the dtypes or ranks of its values
  //                     differ
  //   as ReplicaRunner::Run()
  absl::StatusOr<std::vector<PerReplica>> Run(
      const StepFunction& step, absl::Span<const DistributedValue> arguments);
  absl::StatusOr<std::vector<PerReplica>> Run(const StepFunction& step) {
    return Run(step, absl::Span<const DistributedValue>());
  }

  // As above, with the output of a DistributedIterator, whose components are
  // the first arguments. Random numbers depend on a row's position in the
  // global batch. A replica without rows runs the step on an empty batch, and
  // its updates are ignored.
  absl::StatusOr<std::vector<PerReplica>> Run(
      const StepFunction& step, const std::vector<ReplicaBatch>& batch,
      absl::Span<const DistributedValue> more_arguments = {});

  // Reduces the values of all replicas, which have the same shape.
  //   kInvalidArgument  their types differ, or as CrossDeviceOps
  absl::StatusOr<Tensor> Reduce(ReduceOp op, const DistributedValue& value);

  // Also reduces along `axes` of the values, which are removed. Along the
  // batch, axis 0, replicas may have different numbers of rows, or none. kMean
  // is the mean of all elements, independent of their division among replicas.
  //   kInvalidArgument  an axis is out of range or repeated, values differ in
  //                     other extents, or `op` is neither kSum nor kMean
  absl::StatusOr<Tensor> Reduce(ReduceOp op, const DistributedValue& value,
                                absl::Span<const int64_t> axes);

  // Concatenates the values along `axis`, in replica order.
  //   kInvalidArgument  values are scalars, or their types differ in more than
  //                     the extents along `axis`
  absl::StatusOr<Tensor> Gather(const DistributedValue& value, int64_t axis);

  // Returns the values of this process's replicas.
  std::vector<Tensor> LocalResults(const DistributedValue& value) const;

  // Creates one value for each replica of this process.
  //   errors  as `function`
  absl::StatusOr<PerReplica> DistributeValuesFromFunction(
      const ValueFunction& function) const;

  // `dataset` is batched by the global batch size. See DistributeDataset() in
  // common/learn/strategy/input/distributed_dataset.h.
  absl::StatusOr<DistributedDataset> DistributeDataset(
      const Dataset& dataset) const;
  absl::StatusOr<DistributedDataset> DistributeDataset(
      const Dataset& dataset, const InputOptions& options) const;
  // `function` batches by one replica's batch size, for this worker.
  absl::StatusOr<DistributedDataset> DistributeDatasetsFromFunction(
      const DatasetFunction& function) const;

  const CrossDeviceOps& cross_device_ops() const {
    return *options_.cross_device_ops;
  }

 private:
  bool SpansWorkers() const { return group_->worker_count() > 1; }
  absl::Status AddArguments(absl::Span<const DistributedValue> arguments,
                            ReplicaRunner::Call* call) const;
  // Returns the values of the replicas of this process; repeats a common value.
  absl::StatusOr<PerReplica> ByReplica(const DistributedValue& value) const;
  // Reduces in place, over the replicas of all workers.
  absl::StatusOr<Tensor> AllReduce(ReduceOp op, const PerReplica& values);
  // Returns the types of the values of all replicas, or the same error on all
  // replicas.
  absl::StatusOr<std::vector<TensorType>> ExchangeTypes(
      const PerReplica& values);
  absl::StatusOr<std::vector<Tensor>> ValuesOfAll(
      const PerReplica& values, absl::Span<const TensorType> types);

  ReplicaGroup* const group_;
  Options options_;
  ReplicaRunner runner_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_REPLICA_REPLICA_OPERATIONS_H_
