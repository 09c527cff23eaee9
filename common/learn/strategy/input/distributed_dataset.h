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

// One dataset for many replicas: defines the data of each local replica in each
// step.
//
// A *global batch* is the data of all replicas of all workers in one step; the
// distributed dataset is batched by its size. A *sub-batch* is one replica's
// part of it. Every worker distributes a dataset with the same definition.
//
// Equivalent to: tf.distribute.DistributedDataset, DistributedIterator.

// Which worker reads which part of the data. Has no effect with one worker.
enum class AutoShardPolicy {
  // kHint if the dataset has ShardByPipeline(); kFile if it reads at least as
  // many files as there are workers and no stage counts elements of the whole
  // dataset (Take(), Skip(), Shard()); otherwise kData, and a warning gives the
  // reason.
  kAuto,
  // A worker reads files index, index + worker_count, ... of every reader. A
  // batch then comes from the worker's own files and lasts worker_count steps.
  // Workers may end at different steps.
  kFile,
  // Every worker reads everything and keeps its rows of each global batch. The
  // order is the same on all workers: each of them is pipeline 0 of 1, so even
  // a shuffle that is decorrelated between pipelines has one order. C++
  // functions in the dataset must behave identically on all workers.
  kData,
  // ShardByPipeline() in the dataset marks where elements are sharded.
  kHint,
  // Every worker reads its whole dataset.
  kOff,
};

// "AUTO", "FILE", ...
absl::string_view AutoShardPolicyName(AutoShardPolicy policy);

inline constexpr int kPrefetchStepCountMax = 1024;

struct InputOptions {
  AutoShardPolicy auto_shard_policy = AutoShardPolicy::kAuto;
  // For evaluation and prediction: every element is used once by the group, and
  // the sub-batches of a step, in the order of the replicas, are the rows of
  // one batch of the dataset, in order. Overrides auto_shard_policy.
  bool exactly_once = false;
  // kDefault is TensorFlow's choice: kLegacy if every worker reads everything
  // (kData), kBalanced otherwise.
  RebatchRule rebatch_rule = RebatchRule::kDefault;
  // For datasets without a Batch() stage whose elements are batches
  // nevertheless; 0: derived from the dataset.
  int64_t global_batch_size = 0;
  // Steps whose sub-batches are prepared in advance by a thread of the
  // iterator; 0: no thread, they are prepared when requested. At most
  // kPrefetchStepCountMax.
  int prefetch_step_count = 2;
  // How long Next() waits for that thread before it logs what it waits for. It
  // then continues to wait.
  absl::Duration slow_input_warning = absl::Seconds(30);
};

// How a dataset was distributed, for logs and summary.json.
struct InputReport {
  AutoShardPolicy policy = AutoShardPolicy::kOff;  // Never kAuto.
  int64_t global_batch_size = 0;                   // 0: unknown or not needed.
  // Files read by all workers together, and by this one; 0: none.
  int64_t file_count = 0;
  int64_t local_file_count = 0;
};

// Creates the dataset of one worker. Its elements are one replica's batches:
// see InputContext::GetPerReplicaBatchSize().
using DatasetFunction =
    std::function<absl::StatusOr<Dataset>(const InputContext&)>;

// Immutable and cheap to copy. Thread-safe.
class DistributedDataset {
 public:
  // The types of each replica's element. The batch extent is unknown if the
  // group has more than one replica.
  const std::vector<TensorType>& element_types() const {
    return plan_.element_types;
  }

  const InputPlacement& placement() const { return plan_.placement; }
  const InputReport& report() const { return report_; }

  // Steps of an epoch: until no worker has data left.
  // Dataset::kUnknownCardinality if that depends on the data of other workers.
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

  Dataset dataset_;  // The part that this worker reads.
  InputContext context_;
  SubBatchPlan plan_;
  int prefetch_step_count_ = 0;
  absl::Duration slow_input_warning_;
  InputReport report_;
  int64_t step_count_ = Dataset::kUnknownCardinality;
};

// `dataset` is batched by the global batch size; the rebatch rule defines the
// sub-batches. Logs the choice of kAuto, and the cost of a policy.
//   kInvalidArgument  the placement or an option is invalid; there is more than
//                     one replica and the dataset has no Batch(), has several
//                     batch sizes, or has components without rows; FILE: fewer
//                     files than workers; FILE or DATA: the dataset already
//                     shards by pipeline; HINT: it does not
//   kNotFound         FILE: a source of the dataset reads no files
//   as Dataset::status()
absl::StatusOr<DistributedDataset> DistributeDataset(
    const Dataset& dataset, const InputPlacement& placement,
    const InputOptions& options = {});

// `function` is called once, for this worker. Nothing is rebatched, sharded or
// prefetched; replicas of the worker draw consecutive elements.
//   kInvalidArgument  the placement is invalid; or there is more than one
//                     replica and elements have a component without rows
//   as `function`
absl::StatusOr<DistributedDataset> DistributeDatasetsFromFunction(
    const DatasetFunction& function, const InputPlacement& placement);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_INPUT_DISTRIBUTED_DATASET_H_
