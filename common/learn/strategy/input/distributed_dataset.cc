#include "common/learn/strategy/input/distributed_dataset.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/shape.h"
#include "common/dataset/sharding.h"
#include "common/learn/strategy/input/prefetched_steps.h"

namespace muster {
namespace {

constexpr int kReplicaCountMax = 1 << 20;

absl::Status CheckPlacement(const InputPlacement& placement) {
  if (placement.worker_count >= 1 && placement.worker_index >= 0 &&
      placement.worker_index < placement.worker_count &&
      placement.replicas_per_worker >= 1 &&
      placement.replicas_per_worker <=
          kReplicaCountMax / placement.worker_count) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "distributed input: worker ", placement.worker_index, " of ",
      placement.worker_count, " with ", placement.replicas_per_worker,
      " replicas each; expected an index below the number of workers, at least "
      "one replica, and at most ",
      kReplicaCountMax, " in all"));
}

absl::Status CheckOptions(const InputOptions& options) {
  if (options.prefetch_step_count < 0 ||
      options.prefetch_step_count > kPrefetchStepCountMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("distributed input: prefetch_step_count is ",
                     options.prefetch_step_count, "; expected 0 to ",
                     kPrefetchStepCountMax));
  }
  if (options.global_batch_size < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("distributed input: global_batch_size is ",
                     options.global_batch_size, "; expected 0 or more"));
  }
  if (options.slow_input_warning <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("distributed input: slow_input_warning is ",
                     absl::FormatDuration(options.slow_input_warning),
                     "; expected more than 0"));
  }
  return absl::OkStatus();
}

// The part that this worker reads, and whether its elements are global batches.
struct Sharded {
  AutoShardPolicy policy = AutoShardPolicy::kOff;
  Dataset dataset;
  bool reads_everything = false;
};

absl::StatusOr<Sharded> ShardByFile(const Dataset& dataset,
                                    const ShardingTraits& traits,
                                    const InputPlacement& placement) {
  if (traits.shards_by_pipeline) {
    return absl::InvalidArgumentError(
        "auto_shard_policy FILE: the dataset has ShardByPipeline() and would "
        "be sharded twice; take it out, or set auto_shard_policy to HINT");
  }
  absl::StatusOr<Dataset> sharded =
      ShardFiles(dataset, placement.worker_count, placement.worker_index);
  if (!sharded.ok()) {
    return absl::Status(
        sharded.status().code(),
        absl::StrCat("auto_shard_policy FILE: ", sharded.status().message(),
                     "; set auto_shard_policy to DATA (every worker reads "
                     "everything and takes its rows of each batch) or OFF "
                     "(every worker goes through all of the data)"));
  }
  return Sharded{.policy = AutoShardPolicy::kFile,
                 .dataset = *std::move(sharded)};
}

absl::StatusOr<Sharded> ShardByData(const Dataset& dataset,
                                    const ShardingTraits& traits) {
  if (traits.shards_by_pipeline) {
    return absl::InvalidArgumentError(
        "auto_shard_policy DATA: the dataset has ShardByPipeline() and would "
        "be sharded twice; take it out, or set auto_shard_policy to HINT");
  }
  return Sharded{.policy = AutoShardPolicy::kData,
                 .dataset = dataset,
                 .reads_everything = true};
}

absl::StatusOr<Sharded> ShardByHint(const Dataset& dataset,
                                    const ShardingTraits& traits) {
  if (!traits.shards_by_pipeline) {
    return absl::InvalidArgumentError(
        "auto_shard_policy HINT: the dataset has no ShardByPipeline(), so "
        "nothing would be sharded; put it where elements are to be sharded, "
        "for example right before Shuffle()");
  }
  return Sharded{.policy = AutoShardPolicy::kHint, .dataset = dataset};
}

// Every worker finds the same, and one of them says it.
bool SpeaksForAll(const InputPlacement& placement) {
  return placement.worker_index == 0;
}

absl::StatusOr<Sharded> ShardAsFits(const Dataset& dataset,
                                    const ShardingTraits& traits,
                                    const InputPlacement& placement) {
  if (traits.shards_by_pipeline) {
    if (SpeaksForAll(placement)) {
      LOG(INFO) << "auto_shard_policy AUTO: ShardByPipeline() in the dataset "
                   "shards elements among "
                << placement.worker_count << " workers (HINT)";
    }
    return ShardByHint(dataset, traits);
  }
  std::string reason =
      "Take(), Skip() or Shard() in the dataset count elements of the whole";
  if (!traits.counts_elements) {
    absl::StatusOr<Dataset> sharded =
        ShardFiles(dataset, placement.worker_count, placement.worker_index);
    if (sharded.ok()) {
      if (SpeaksForAll(placement)) {
        LOG(INFO) << "auto_shard_policy AUTO: files are sharded among "
                  << placement.worker_count << " workers (FILE)";
      }
      return Sharded{.policy = AutoShardPolicy::kFile,
                     .dataset = *std::move(sharded)};
    }
    const absl::StatusCode code = sharded.status().code();
    if (code != absl::StatusCode::kNotFound &&
        code != absl::StatusCode::kInvalidArgument) {
      return sharded.status();
    }
    reason = std::string(sharded.status().message());
  }
  if (SpeaksForAll(placement)) {
    LOG(WARNING)
        << "auto_shard_policy AUTO: each of " << placement.worker_count
        << " workers reads everything and takes its rows of each batch "
           "(DATA), because "
        << reason << "; set auto_shard_policy to DATA if that is meant";
  }
  return ShardByData(dataset, traits);
}

Sharded LeaveWhole(const Dataset& dataset, const ShardingTraits& traits,
                   const InputPlacement& placement) {
  if (!traits.shards_by_pipeline) {
    if (SpeaksForAll(placement)) {
      LOG(WARNING) << "auto_shard_policy OFF: each of "
                   << placement.worker_count
                   << " workers goes through all of its dataset; unless it is "
                      "sharded already, an epoch sees the data "
                   << placement.worker_count << " times";
    }
  }
  return {.policy = AutoShardPolicy::kOff, .dataset = dataset};
}

absl::StatusOr<Sharded> ShardDataset(const Dataset& dataset,
                                     const InputPlacement& placement,
                                     const InputOptions& options) {
  if (placement.worker_count == 1 || options.exactly_once) {
    return Sharded{.policy = placement.worker_count == 1
                                 ? AutoShardPolicy::kOff
                                 : AutoShardPolicy::kData,
                   .dataset = dataset,
                   .reads_everything = true};
  }
  ASSIGN_OR_RETURN(const ShardingTraits traits, ShardingTraitsOf(dataset));
  switch (options.auto_shard_policy) {
    case AutoShardPolicy::kAuto:
      return ShardAsFits(dataset, traits, placement);
    case AutoShardPolicy::kFile:
      if (traits.counts_elements) {
        if (SpeaksForAll(placement)) {
          LOG(WARNING)
              << "auto_shard_policy FILE: Take(), Skip() or Shard() in "
                 "the dataset count elements of one worker's files, not "
                 "of all";
        }
      }
      return ShardByFile(dataset, traits, placement);
    case AutoShardPolicy::kData:
      return ShardByData(dataset, traits);
    case AutoShardPolicy::kHint:
      return ShardByHint(dataset, traits);
    case AutoShardPolicy::kOff:
      return LeaveWhole(dataset, traits, placement);
  }
  return absl::InternalError("unknown auto_shard_policy");
}

absl::StatusOr<int64_t> GlobalBatchSize(const Dataset& dataset,
                                        const InputPlacement& placement,
                                        const InputOptions& options) {
  ASSIGN_OR_RETURN(int64_t batch_size, BatchSizeOf(dataset));
  if (batch_size > 0 && options.global_batch_size > 0 &&
      batch_size != options.global_batch_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "global_batch_size is ", options.global_batch_size,
        " and the dataset has Batch(", batch_size, "); expected the same"));
  }
  if (batch_size == 0) batch_size = options.global_batch_size;
  if (batch_size == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the dataset has no Batch(), and its elements are to be divided among ",
        placement.replica_count(),
        " replicas; batch it by the global batch size, or say the size in "
        "global_batch_size where elements are batches already"));
  }
  if (batch_size < placement.replica_count()) {
    if (SpeaksForAll(placement)) {
      LOG(WARNING) << "a global batch of " << batch_size << " for "
                   << placement.replica_count()
                   << " replicas: in every step some have nothing to do";
    }
  }
  return batch_size;
}

// The types of an element with any number of rows.
absl::StatusOr<std::vector<TensorType>> SubBatchTypes(
    const Dataset& dataset, const InputPlacement& placement) {
  std::vector<TensorType> types = dataset.element_types();
  if (placement.replica_count() == 1) return types;
  for (size_t c = 0; c < types.size(); ++c) {
    if (types[c].shape.rank() == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "component ", c, " of the dataset is ", types[c].ToString(),
          " and has no rows, so that a replica without data cannot be given "
          "none; batch the dataset"));
    }
    types[c].shape.set_dim(0, Shape::kUnknown);
  }
  return types;
}

int64_t StepCountOf(const Sharded& sharded, const SubBatchPlan& plan) {
  const int64_t cardinality = sharded.dataset.Cardinality();
  if (cardinality == Dataset::kInfinite || sharded.reads_everything) {
    return cardinality;
  }
  const TensorType& first = sharded.dataset.element_types()[0];
  // A batch that is not full lasts for fewer steps than the others.
  if (sharded.policy != AutoShardPolicy::kOff || cardinality < 0 ||
      first.shape.dim(0) != plan.batch_size) {
    return Dataset::kUnknownCardinality;
  }
  return cardinality * plan.placement.worker_count;
}

RebatchRule RuleFor(const InputOptions& options, const Sharded& sharded) {
  if (options.rebatch_rule != RebatchRule::kDefault) {
    return options.rebatch_rule;
  }
  return sharded.policy == AutoShardPolicy::kData ? RebatchRule::kLegacy
                                                  : RebatchRule::kBalanced;
}

}  // namespace

absl::string_view AutoShardPolicyName(AutoShardPolicy policy) {
  switch (policy) {
    case AutoShardPolicy::kAuto:
      return "AUTO";
    case AutoShardPolicy::kFile:
      return "FILE";
    case AutoShardPolicy::kData:
      return "DATA";
    case AutoShardPolicy::kHint:
      return "HINT";
    case AutoShardPolicy::kOff:
      return "OFF";
  }
  return "unknown";
}

absl::StatusOr<DistributedDataset> DistributeDataset(
    const Dataset& dataset, const InputPlacement& placement,
    const InputOptions& options) {
  RETURN_IF_ERROR(dataset.status());
  RETURN_IF_ERROR(CheckPlacement(placement));
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(Sharded sharded, ShardDataset(dataset, placement, options));
  DistributedDataset distributed;
  SubBatchPlan& plan = distributed.plan_;
  plan.placement = placement;
  ASSIGN_OR_RETURN(plan.element_types, SubBatchTypes(dataset, placement));
  if (placement.replica_count() > 1) {
    plan.division =
        sharded.reads_everything ? Division::kOneStep : Division::kManySteps;
    plan.rule = RuleFor(options, sharded);
    ASSIGN_OR_RETURN(plan.batch_size,
                     GlobalBatchSize(dataset, placement, options));
  }
  distributed.context_ = {
      .num_input_pipelines =
          sharded.reads_everything ? 1 : placement.worker_count,
      .input_pipeline_id =
          sharded.reads_everything ? 0 : placement.worker_index,
      .num_replicas_in_sync = placement.replica_count()};
  distributed.prefetch_step_count_ = options.prefetch_step_count;
  distributed.slow_input_warning_ = options.slow_input_warning;
  distributed.step_count_ = StepCountOf(sharded, plan);
  distributed.report_ = {.policy = sharded.policy,
                         .global_batch_size = plan.batch_size};
  ASSIGN_OR_RETURN(distributed.report_.file_count, FileCountOf(dataset));
  ASSIGN_OR_RETURN(distributed.report_.local_file_count,
                   FileCountOf(sharded.dataset));
  distributed.dataset_ = std::move(sharded.dataset);
  return distributed;
}

absl::StatusOr<DistributedDataset> DistributeDatasetsFromFunction(
    const DatasetFunction& function, const InputPlacement& placement) {
  RETURN_IF_ERROR(CheckPlacement(placement));
  if (function == nullptr) {
    return absl::InvalidArgumentError("distributed input: no function");
  }
  DistributedDataset distributed;
  distributed.context_ = {.num_input_pipelines = placement.worker_count,
                          .input_pipeline_id = placement.worker_index,
                          .num_replicas_in_sync = placement.replica_count()};
  ASSIGN_OR_RETURN(distributed.dataset_, function(distributed.context_));
  const Dataset& dataset = distributed.dataset_;
  RETURN_IF_ERROR(dataset.status());
  SubBatchPlan& plan = distributed.plan_;
  plan.placement = placement;
  ASSIGN_OR_RETURN(plan.element_types, SubBatchTypes(dataset, placement));
  ASSIGN_OR_RETURN(plan.batch_size, BatchSizeOf(dataset));
  distributed.report_.global_batch_size =
      plan.batch_size * placement.replica_count();
  ASSIGN_OR_RETURN(distributed.report_.file_count, FileCountOf(dataset));
  distributed.report_.local_file_count = distributed.report_.file_count;
  const int64_t cardinality = dataset.Cardinality();
  const int64_t replicas = placement.replicas_per_worker;
  if (cardinality < 0) {
    distributed.step_count_ = cardinality;
  } else if (placement.worker_count == 1) {
    distributed.step_count_ =
        cardinality / replicas + (cardinality % replicas == 0 ? 0 : 1);
  }
  return distributed;
}

absl::StatusOr<std::unique_ptr<DistributedIterator>>
DistributedDataset::MakeIterator(int64_t epoch) const {
  ASSIGN_OR_RETURN(std::unique_ptr<DatasetIterator> elements,
                   dataset_.MakeIterator(context_, epoch));
  std::unique_ptr<DistributedIterator> steps =
      DivideAmongReplicas(std::move(elements), plan_);
  if (prefetch_step_count_ == 0) return steps;
  return PrefetchSteps(
      std::move(steps),
      {.step_count = prefetch_step_count_,
       .slow_input_warning = slow_input_warning_,
       .on_slow_input = [worker = plan_.placement.worker_index](
                            absl::Duration waited, int64_t step_count) {
         LOG(WARNING) << "worker " << worker << " has waited "
                      << absl::FormatDuration(waited)
                      << " for its dataset to give the next batch, after "
                      << step_count << " steps";
       }});
}

}  // namespace muster
