#include "common/learn/strategy/input/sharding_plan.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/shape.h"
#include "common/dataset/sharding.h"

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

absl::Status CheckInputOptions(const InputOptions& options) {
  const auto refuse = [](const auto&... problem) {
    return absl::InvalidArgumentError(
        absl::StrCat("distributed input: ", problem...));
  };
  if (AutoShardPolicyName(options.auto_shard_policy) == "unknown") {
    return refuse("auto_shard_policy is ",
                  static_cast<int>(options.auto_shard_policy),
                  "; expected -1 (OFF) to 3 (HINT)");
  }
  if (options.prefetch_step_count < 0 ||
      options.prefetch_step_count > kPrefetchStepCountMax) {
    return refuse("prefetch_step_count is ", options.prefetch_step_count,
                  "; expected 0 to ", kPrefetchStepCountMax);
  }
  if (options.global_batch_size < 0) {
    return refuse("global_batch_size is ", options.global_batch_size,
                  "; expected 0 or more");
  }
  if (options.slow_input_warning > absl::ZeroDuration()) {
    return absl::OkStatus();
  }
  return refuse("slow_input_warning is ",
                absl::FormatDuration(options.slow_input_warning),
                "; expected more than 0");
}

// `files`: what this worker reads if files are divided, or why they are not.
absl::Status CheckPolicy(AutoShardPolicy policy, bool has_hint,
                         const absl::Status& files) {
  const std::string name =
      absl::StrCat("auto_shard_policy ", AutoShardPolicyName(policy), ": ");
  const bool wants_hint = policy == AutoShardPolicy::kHint;
  if (policy != AutoShardPolicy::kOff && has_hint != wants_hint) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, has_hint
                  ? "the dataset has ShardByPipeline() and would be sharded "
                    "twice; take it out, or set auto_shard_policy to HINT"
                  : "the dataset has no ShardByPipeline(), so nothing would be "
                    "sharded; put it where elements are to be sharded, for "
                    "example right before Shuffle()"));
  }
  if (policy != AutoShardPolicy::kFile || files.ok()) return absl::OkStatus();
  return absl::Status(
      files.code(),
      absl::StrCat(name, files.message(),
                   "; set auto_shard_policy to DATA (every worker reads "
                   "everything and takes its rows of each batch) or OFF "
                   "(every worker goes through all of the data)"));
}

// Sets the reason for the policy, with what it costs.
void Explain(AutoShardPolicy wanted, const ShardingTraits& traits,
             const absl::Status& files, ShardingPlan* plan) {
  std::string effect, cause, cost;
  if (plan->policy == AutoShardPolicy::kHint) {
    effect =
        "ShardByPipeline() in the dataset shards elements among $0 workers";
  } else if (plan->policy == AutoShardPolicy::kFile) {
    effect = "files are sharded among $0 workers";
    if (traits.counts_elements) {
      cost =
          "; Take(), Skip() or Shard() in the dataset count elements of one "
          "worker's files, not of all";
    }
  } else if (plan->policy == AutoShardPolicy::kData) {
    effect =
        "each of $0 workers reads everything and takes its rows of each "
        "batch";
    if (wanted == AutoShardPolicy::kAuto) {
      cause = absl::StrCat(", because ", files.message());
      cost = "; set auto_shard_policy to DATA if that is meant";
    }
  } else {
    effect = "each of $0 workers goes through all of its dataset";
    if (!traits.shards_by_pipeline) {
      cost = "; unless it is sharded already, an epoch sees the data $0 times";
    }
  }
  const int worker_count = plan->placement.worker_count;
  plan->has_warning = !cost.empty();
  plan->reason = absl::StrCat("auto_shard_policy ", AutoShardPolicyName(wanted),
                              ": ", absl::Substitute(effect, worker_count),
                              " (", AutoShardPolicyName(plan->policy), ")",
                              cause, absl::Substitute(cost, worker_count));
}

// Sets the policy, and the dataset to what this worker reads by it.
absl::Status ChoosePolicy(AutoShardPolicy wanted, ShardingPlan* plan) {
  using enum AutoShardPolicy;
  ASSIGN_OR_RETURN(const ShardingTraits traits,
                   ShardingTraitsOf(plan->dataset));
  const bool has_hint = traits.shards_by_pipeline;
  absl::StatusOr<Dataset> files = absl::NotFoundError(
      "Take(), Skip() or Shard() in the dataset count elements of the whole");
  if (!has_hint &&
      (wanted == kFile || (wanted == kAuto && !traits.counts_elements))) {
    files = ShardFiles(plan->dataset, plan->placement.worker_count,
                       plan->placement.worker_index);
  }
  plan->policy = wanted;
  if (wanted == kAuto) {
    const bool has_files_for_all = !absl::IsNotFound(files.status()) &&
                                   !absl::IsInvalidArgument(files.status());
    plan->policy = has_hint ? kHint : has_files_for_all ? kFile : kData;
    if (plan->policy == kFile) RETURN_IF_ERROR(files.status());
  }
  RETURN_IF_ERROR(CheckPolicy(plan->policy, has_hint, files.status()));
  Explain(wanted, traits, files.status(), plan);
  if (plan->policy != kFile) return absl::OkStatus();
  ASSIGN_OR_RETURN(plan->file_count, FileCountOf(plan->dataset));
  ASSIGN_OR_RETURN(plan->local_file_count, FileCountOf(*files));
  plan->dataset = *std::move(files);
  return absl::OkStatus();
}

// Sets the batch size that the replicas divide.
absl::Status ChooseBatchSize(int64_t stated, ShardingPlan* plan) {
  const int replica_count = plan->placement.replica_count();
  ASSIGN_OR_RETURN(int64_t batch_size, BatchSizeOf(plan->dataset));
  if (batch_size > 0 && stated > 0 && batch_size != stated) {
    return absl::InvalidArgumentError(absl::StrCat(
        "global_batch_size is ", stated, " and the dataset has Batch(",
        batch_size, "); expected the same"));
  }
  if (batch_size == 0) batch_size = stated;
  if (batch_size == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the dataset has no Batch(), and its elements are to be divided among ",
        replica_count,
        " replicas; batch it by the global batch size, or say the size in "
        "global_batch_size where elements are batches already"));
  }
  if (batch_size < replica_count) {
    plan->has_warning = true;
    absl::StrAppend(&plan->reason, "; a global batch of ", batch_size, " for ",
                    replica_count,
                    " replicas: in every step some have nothing to do");
  }
  plan->batch_size = batch_size;
  return absl::OkStatus();
}

// Lets the elements of several replicas have any number of rows.
absl::Status OpenBatchExtents(ShardingPlan* plan) {
  if (plan->placement.replica_count() == 1) return absl::OkStatus();
  std::vector<TensorType>& types = plan->element_types;
  for (size_t c = 0; c < types.size(); ++c) {
    if (types[c].shape.rank() == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "component ", c, " of the dataset is ", types[c].ToString(),
          " and has no rows, so that a replica without data cannot be given "
          "none; batch the dataset"));
    }
    types[c].shape.set_dim(0, Shape::kUnknown);
  }
  return absl::OkStatus();
}

int64_t StepCountOf(const ShardingPlan& plan) {
  const int64_t cardinality = plan.dataset.Cardinality();
  const InputPlacement& placement = plan.placement;
  if (cardinality < 0 || plan.division == Division::kOneStep) {
    return cardinality;
  }
  if (plan.division == Division::kNone && placement.worker_count == 1) {
    const int64_t replicas = placement.replicas_per_worker;
    return cardinality / replicas + (cardinality % replicas == 0 ? 0 : 1);
  }
  // A batch that is not full lasts for fewer steps than the others.
  const bool are_all_full =
      plan.division == Division::kManySteps &&
      plan.dataset.element_types()[0].shape.dim(0) == plan.batch_size;
  return are_all_full && plan.policy == AutoShardPolicy::kOff
             ? cardinality * placement.worker_count
             : Dataset::kUnknownCardinality;
}

absl::Status PlanDivided(const ShardingRequest& request, ShardingPlan* plan) {
  const InputOptions& options = request.options;
  RETURN_IF_ERROR(CheckInputOptions(options));
  if (request.placement.micro_batch_count > 0) {
    plan->reason = "every worker reads everything, for its micro-batches";
  } else if (plan->placement.worker_count == 1) {
    plan->reason = "one worker reads everything";
  } else if (options.exactly_once) {
    plan->reason = "every worker reads everything, for its rows of each batch";
    plan->policy = AutoShardPolicy::kData;
  } else {
    RETURN_IF_ERROR(ChoosePolicy(options.auto_shard_policy, plan));
  }
  const bool is_data = plan->policy == AutoShardPolicy::kData;
  if (is_data) {
    plan->context.num_input_pipelines = 1;
    plan->context.input_pipeline_id = 0;
  }
  if (plan->placement.replica_count() == 1) return absl::OkStatus();
  plan->division = is_data || plan->placement.worker_count == 1
                       ? Division::kOneStep
                       : Division::kManySteps;
  plan->rebatch_rule = options.rebatch_rule;
  if (plan->rebatch_rule == RebatchRule::kDefault) {
    plan->rebatch_rule =
        is_data ? RebatchRule::kLegacy : RebatchRule::kBalanced;
  }
  RETURN_IF_ERROR(OpenBatchExtents(plan));
  return ChooseBatchSize(options.global_batch_size, plan);
}

absl::Status PlanCopied(ShardingPlan* plan) {
  plan->reason =
      "every worker draws from a copy of the dataset, which starts again at "
      "its end";
  plan->decorrelates_all_shuffles = true;
  plan->step_count = plan->dataset.Cardinality();
  if (plan->step_count == Dataset::kUnknownCardinality) {
    return absl::InvalidArgumentError(
        "the length of the data is unknown, and every worker draws from a copy "
        "of it: Repeat() it, and specify the number of steps");
  }
  // The steps of a pass are counted over all workers.
  if (plan->step_count >= 0) plan->dataset = plan->dataset.Repeat();
  return absl::OkStatus();
}

std::string DescribeRows(const ShardingPlan& plan) {
  if (plan.division == Division::kNone) return "takes whole batches";
  const InputPlacement& placement = plan.placement;
  const std::vector<RowRange> ranges =
      DivideBatch(plan.rebatch_rule, plan.batch_size, plan.batch_size,
                  placement.replica_count());
  const int first = placement.worker_index * placement.replicas_per_worker;
  const int last = first + placement.replicas_per_worker - 1;
  return absl::StrCat(
      plan.division == Division::kOneStep
          ? absl::StrCat("takes rows ", ranges[first].begin, " to below ",
                         ranges[last].end)
          : absl::StrCat("takes ", placement.worker_count, " steps"),
      " for each batch of ", plan.batch_size, ", with at most ",
      ranges[0].size(), " rows per replica (",
      plan.rebatch_rule == RebatchRule::kLegacy ? "LEGACY" : "BALANCED", ")");
}

}  // namespace

absl::string_view AutoShardPolicyName(AutoShardPolicy policy) {
  switch (policy) {
    case AutoShardPolicy::kOff:
      return "OFF";
    case AutoShardPolicy::kAuto:
      return "AUTO";
    case AutoShardPolicy::kFile:
      return "FILE";
    case AutoShardPolicy::kData:
      return "DATA";
    case AutoShardPolicy::kHint:
      return "HINT";
  }
  return "unknown";
}

absl::StatusOr<std::unique_ptr<DatasetIterator>>
ShardingPlan::MakeIteratorAfter(int64_t epoch, int64_t batch_count) const {
  ASSIGN_OR_RETURN(std::unique_ptr<DatasetIterator> iterator,
                   MakeIterator(epoch));
  Element skipped;
  for (int64_t i = 0; i < batch_count; ++i) {
    ASSIGN_OR_RETURN(const bool has_element, iterator->Next(&skipped));
    if (!has_element) return TooFewBatches(batch_count, i);
  }
  return iterator;
}

absl::Status TooFewBatches(int64_t expected_count, int64_t batch_count) {
  return absl::DataLossError(
      absl::StrCat("training continues after batch ", expected_count,
                   " of the data, which has only ", batch_count,
                   " batches: the data has changed since training began"));
}

std::string ShardingPlan::ToString() const {
  std::string files;
  if (policy == AutoShardPolicy::kFile) {
    files = absl::StrCat("reads files ", placement.worker_index, " + ",
                         placement.worker_count, " i (", local_file_count,
                         " of ", file_count, "); ");
  }
  return absl::StrCat(
      reason, "; worker ", placement.worker_index, " of ",
      placement.worker_count, ": ", files, DescribeRows(*this), "; ",
      continues_at_end ? "at the end continues without rows until all workers "
                         "reach their end; "
                       : "",
      "shuffles as pipeline ", context.input_pipeline_id, " of ",
      context.num_input_pipelines,
      decorrelates_all_shuffles ? ", each in another order" : "");
}

absl::StatusOr<ShardingPlan> PlanSharding(const ShardingRequest& request) {
  const int worker_count = request.placement.worker_count;
  const bool is_synchronous = request.path == BatchPath::kDivided ||
                              request.path == BatchPath::kMadePerReplica;
  ShardingPlan plan{.dataset = request.dataset, .placement = request.placement};
  if (request.placement.micro_batch_count > 0) {
    plan.placement = {.replicas_per_worker =
                          request.placement.micro_batch_count};
  }
  if (is_synchronous) RETURN_IF_ERROR(CheckPlacement(plan.placement));
  plan.context = {.num_input_pipelines = plan.placement.worker_count,
                  .input_pipeline_id = plan.placement.worker_index};
  if (is_synchronous) {
    plan.context.num_replicas_in_sync = plan.placement.replica_count();
  }
  if (request.function != nullptr) {
    ASSIGN_OR_RETURN(plan.dataset, request.function(plan.context));
  }
  RETURN_IF_ERROR(plan.dataset.status());
  plan.element_types = plan.dataset.element_types();
  plan.continues_at_end = is_synchronous && worker_count > 1;
  switch (request.path) {
    case BatchPath::kDivided:
      RETURN_IF_ERROR(PlanDivided(request, &plan));
      break;
    case BatchPath::kMadePerReplica: {
      plan.reason = "a function makes the dataset of each worker";
      RETURN_IF_ERROR(OpenBatchExtents(&plan));
      ASSIGN_OR_RETURN(plan.batch_size, BatchSizeOf(plan.dataset));
      break;
    }
    case BatchPath::kCopied:
      RETURN_IF_ERROR(PlanCopied(&plan));
      break;
    case BatchPath::kMadePerWorker:
      plan.reason = "every worker draws from the dataset made for it";
      break;
  }
  if (is_synchronous) plan.step_count = StepCountOf(plan);
  plan.is_logged =
      request.placement.worker_index == 0 &&
      (plan.has_warning || (worker_count > 1 && !request.options.exactly_once));
  return plan;
}

void LogPlan(const ShardingPlan& plan) {
  if (!plan.is_logged) return;
  if (plan.has_warning) {
    LOG(WARNING) << plan.ToString();
  } else {
    LOG(INFO) << plan.ToString();
  }
}

}  // namespace muster
