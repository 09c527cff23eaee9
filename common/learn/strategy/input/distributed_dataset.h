#ifndef COMMON_LEARN_STRATEGY_INPUT_DISTRIBUTED_DATASET_H_
#define COMMON_LEARN_STRATEGY_INPUT_DISTRIBUTED_DATASET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/input/rebatch.h"
#include "common/learn/strategy/input/replica_batch.h"
#include "common/learn/strategy/input/sub_batches.h"

namespace muster {

// One dataset for many replicas: what each local replica trains on in each
// step.
//
// A *global batch* is what all replicas of all workers see in one step; the
// dataset that is distributed is batched by its size. A *sub-batch* is one
// replica's part of it. Every worker distributes a dataset of the same
// definition.
//
// Equivalent to: tf.distribute.DistributedDataset, DistributedIterator.

// Who sees which of the data where there is more than one worker. With one
// worker there is nothing to decide.
enum class AutoShardPolicy {
  // kHint where the dataset has ShardByPipeline(); kFile where it reads at
  // least as many files as there are workers and no stage counts elements of
  // the whole (Take(), Skip(), Shard()); otherwise kData, and a warning says
  // why.
  kAuto,
  // A worker reads files index, index + worker_count, ... of every reader. A
  // batch then comes from the worker's own files and lasts worker_count steps.
  // Workers may end at different steps.
  kFile,
  // Every worker reads everything and takes its rows of each global batch. The
  // order is the same everywhere: to the dataset, every worker is pipeline 0 of
  // 1, so even a shuffle that asks for another order in each pipeline has one
  // order. C++ functions in the dataset have to do the same on all workers.
  kData,
  // ShardByPipeline() in the dataset says where elements are dealt out.
  kHint,
  // Every worker goes through whatever its dataset gives it.
  kOff,
};

// "AUTO", "FILE", ...
absl::string_view AutoShardPolicyName(AutoShardPolicy policy);

inline constexpr int kPrefetchStepCountMax = 1024;

struct InputOptions {
  AutoShardPolicy auto_shard_policy = AutoShardPolicy::kAuto;
  // For evaluation and prediction: every element is seen once by the group, and
  // the sub-batches of a step, in the order of the replicas, are the rows of a
  // batch of the dataset in its order. Overrides auto_shard_policy.
  bool exactly_once = false;
  // kDefault is TensorFlow's choice: kLegacy where every worker reads
  // everything (kData), kBalanced otherwise.
  RebatchRule rebatch_rule = RebatchRule::kDefault;
  // For datasets without a Batch() stage whose elements are batches all the
  // same; 0: the dataset says it.
  int64_t global_batch_size = 0;
  // Steps for which the sub-batches lie ready, made by a thread of the
  // iterator; 0: no thread, they are made when asked for. At most
  // kPrefetchStepCountMax.
  int prefetch_step_count = 2;
  // How long Next() waits for that thread before it logs what it waits for; it
  // then waits on.
  absl::Duration slow_input_warning = absl::Seconds(30);
};

// What happened to a dataset, for logs and summary.json.
struct InputReport {
  AutoShardPolicy policy = AutoShardPolicy::kOff;  // Never kAuto.
  int64_t global_batch_size = 0;                   // 0: not known or needed.
  // Files that are read by all workers together, and by this one; 0: none.
  int64_t file_count = 0;
  int64_t local_file_count = 0;
};

// Makes the dataset of one worker. Its elements are one replica's batches: see
// InputContext::GetPerReplicaBatchSize().
using DatasetFunction =
    std::function<absl::StatusOr<Dataset>(const InputContext&)>;

// Immutable and cheap to copy. Thread-safe.
class DistributedDataset {
 public:
  // Of each replica's element. The batch extent is unknown wherever there is
  // more than one replica in the group.
  const std::vector<TensorType>& element_types() const {
    return plan_.element_types;
  }

  const InputPlacement& placement() const { return plan_.placement; }
  const InputReport& report() const { return report_; }

  // Steps of an epoch: until no worker has anything left.
  // Dataset::kUnknownCardinality where that depends on what others have.
  int64_t StepCount() const { return step_count_; }

  // As Dataset::MakeIterator(): `epoch` counts from 0.
  //   as Dataset::MakeIterator()
  absl::StatusOr<std::unique_ptr<DistributedIterator>> MakeIterator(
      int64_t epoch = 0) const;

 private:
  friend absl::StatusOr<DistributedDataset> DistributeDataset(
      const Dataset& dataset, const InputPlacement& placement,
      const InputOptions& options);
  friend absl::StatusOr<DistributedDataset> DistributeDatasetsFromFunction(
      const DatasetFunction& function, const InputPlacement& placement);

  DistributedDataset() = default;

  Dataset dataset_;  // What this worker reads.
  InputContext context_;
  SubBatchPlan plan_;
  int prefetch_step_count_ = 0;
  absl::Duration slow_input_warning_;
  InputReport report_;
  int64_t step_count_ = Dataset::kUnknownCardinality;
};

// `dataset` is batched by the global batch size; sub-batches follow from the
// rebatch rule. Says in the log what kAuto has chosen, and what a policy costs.
//   kInvalidArgument  the placement or an option makes no sense; there is more
//                     than one replica and no Batch() in the dataset, it
//                     batches by several sizes, or elements have a component
//                     without rows; FILE: fewer files than workers; FILE or
//                     DATA: the dataset shards by pipeline already; HINT: it
//                     does not
//   kNotFound         FILE: a source of the dataset reads no files
//   as Dataset::status()
absl::StatusOr<DistributedDataset> DistributeDataset(
    const Dataset& dataset, const InputPlacement& placement,
    const InputOptions& options = {});

// `function` is called once, for this worker. Nothing is rebatched, sharded or
// prefetched; replicas of the worker draw consecutive elements.
//   kInvalidArgument  the placement makes no sense; or there is more than one
//                     replica and elements have a component without rows
//   as `function`
absl::StatusOr<DistributedDataset> DistributeDatasetsFromFunction(
    const DatasetFunction& function, const InputPlacement& placement);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_INPUT_DISTRIBUTED_DATASET_H_
