#ifndef COMMON_LEARN_STRATEGY_INPUT_SHARDING_PLAN_H_
#define COMMON_LEARN_STRATEGY_INPUT_SHARDING_PLAN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/input/rebatch.h"
#include "common/learn/strategy/input/replica_batch.h"

namespace muster {

// Which worker reads which part of the data. Has no effect with one worker.
// Names and numbers are tf.data's.
enum class AutoShardPolicy {
  // Every worker reads its whole dataset.
  kOff = -1,
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
};

// "AUTO", "FILE", ...; "unknown" for a number that is no policy.
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

// Creates the dataset of one worker. Its elements are one replica's batches:
// see InputContext::GetPerReplicaBatchSize().
using DatasetFunction =
    std::function<absl::StatusOr<Dataset>(const InputContext&)>;

// How batches get from a dataset to steps.
enum class BatchPath {
  kDivided,         // Elements are global batches, which all replicas divide.
  kMadePerReplica,  // Elements are batches of one replica.
  kCopied,          // Every worker draws from a copy of the dataset.
  kMadePerWorker,   // Every worker draws from the dataset made for it.
};

// How the elements that a worker draws are divided into its replicas' batches.
enum class Division {
  kNone,       // An element is one replica's batch; replicas draw in order.
  kOneStep,    // An element is the global batch of one step.
  kManySteps,  // An element is divided among several steps.
};

struct ShardingRequest {
  BatchPath path = BatchPath::kDivided;
  Dataset dataset;
  // Makes the dataset of this worker; null: `dataset` is it.
  DatasetFunction function = nullptr;
  InputPlacement placement = {};
  InputOptions options = {};  // For kDivided.
};

struct ShardingPlan {
  Dataset dataset;  // What this worker reads.
  // Of the parts into which a step is divided: replicas or micro-batches.
  InputPlacement placement;
  // The pipeline that seeds decorrelated shuffles and that ShardByPipeline()
  // means.
  InputContext context;
  bool decorrelates_all_shuffles = false;

  AutoShardPolicy policy = AutoShardPolicy::kOff;  // Never kAuto.
  std::string reason;
  bool has_warning = false;  // The reason contains one.
  bool is_logged = false;    // This worker logs the plan, for all workers.
  // The files of all workers, and of this one. 0 unless the policy is kFile.
  int64_t file_count = 0;
  int64_t local_file_count = 0;

  Division division = Division::kNone;
  RebatchRule rebatch_rule = RebatchRule::kBalanced;
  // kNone: the batch size of one replica, or 0 if unknown. Otherwise the global
  // batch size, above 0.
  int64_t batch_size = 0;
  // The types of each replica's element. The batch extent is unknown if the
  // group has more than one replica.
  std::vector<TensorType> element_types;

  // True if this worker continues without rows at the end of its data, until
  // all workers are at their end.
  bool continues_at_end = false;
  // Steps of an epoch: until no worker has data left.
  // Dataset::kUnknownCardinality if that depends on the data of other workers.
  int64_t step_count = Dataset::kUnknownCardinality;

  // As Dataset::MakeIterator().
  absl::StatusOr<std::unique_ptr<DatasetIterator>> MakeIterator(
      int64_t epoch) const {
    return dataset.MakeIterator(context, epoch);
  }
  // The same, after the first `batch_count` elements.
  //   kDataLoss  as TooFewBatches()
  absl::StatusOr<std::unique_ptr<DatasetIterator>> MakeIteratorAfter(
      int64_t epoch, int64_t batch_count) const;
  // Describes the plan in one line.
  std::string ToString() const;
};

// The error (kDataLoss) of training that continues after `expected_count`
// batches of data that has only `batch_count`.
absl::Status TooFewBatches(int64_t expected_count, int64_t batch_count);

// Makes all decisions about dividing a dataset. Pure, except that it calls
// `function` and, for the first element, the functions of Interleave().
//   kInvalidArgument  the placement or an option is invalid; there is more than
//                     one replica and the dataset has no Batch(), has several
//                     batch sizes, or has components without rows; FILE: fewer
//                     files than workers; FILE or DATA: the dataset already
//                     shards by pipeline; HINT: it does not; kCopied: the
//                     length of the dataset is unknown
//   kNotFound         FILE: a source of the dataset reads no files
//   as Dataset::status(), and as `function`
absl::StatusOr<ShardingPlan> PlanSharding(const ShardingRequest& request);

// Logs the plan if it is_logged.
void LogPlan(const ShardingPlan& plan);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_INPUT_SHARDING_PLAN_H_
