#ifndef COMMON_LEARN_STRATEGY_INPUT_DISTRIBUTED_DATASET_H_
#define COMMON_LEARN_STRATEGY_INPUT_DISTRIBUTED_DATASET_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/input/replica_batch.h"
#include "common/learn/strategy/input/sharding_plan.h"

namespace muster {

// One dataset for many replicas. Each local replica has the data in each step
// that a ShardingPlan gives it.
//
// A *global batch* is the data of all replicas of all workers in one step; the
// distributed dataset is batched by its size. A *sub-batch* is one replica's
// part of it. Every worker distributes a dataset with the same definition.
//
// Equivalent to: tf.distribute.DistributedDataset, DistributedIterator.
//
// Immutable and cheap to copy. Thread-safe.
class DistributedDataset {
 public:
  // `options` say how steps are prefetched.
  DistributedDataset(ShardingPlan plan, const InputOptions& options)
      : plan_(std::move(plan)), options_(options) {}

  const ShardingPlan& plan() const { return plan_; }
  const std::vector<TensorType>& element_types() const {
    return plan_.element_types;
  }
  const InputPlacement& placement() const { return plan_.placement; }
  int64_t StepCount() const { return plan_.step_count; }

  // As Dataset::MakeIterator(): `epoch` counts from 0.
  //   as Dataset::MakeIterator()
  absl::StatusOr<std::unique_ptr<DistributedIterator>> MakeIterator(
      int64_t epoch = 0) const;

 private:
  ShardingPlan plan_;
  InputOptions options_;
};

// `dataset` is batched by the global batch size; the rebatch rule defines the
// sub-batches. Logs the plan.
//   as PlanSharding()
absl::StatusOr<DistributedDataset> DistributeDataset(
    const Dataset& dataset, const InputPlacement& placement,
    const InputOptions& options = {});

// `function` is called once, for this worker. Nothing is rebatched, sharded or
// prefetched; replicas of the worker draw consecutive elements.
//   kInvalidArgument  `function` is null
//   as PlanSharding()
absl::StatusOr<DistributedDataset> DistributeDatasetsFromFunction(
    const DatasetFunction& function, const InputPlacement& placement);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_INPUT_DISTRIBUTED_DATASET_H_
