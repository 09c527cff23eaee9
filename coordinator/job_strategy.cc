#include "coordinator/job_strategy.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/job/job_strategy.h"
#include "common/learn/train/job/resolved_job.h"
#include "coordinator/parameter_server_strategy.h"
#include "proto/training_job.pb.h"
#include "ps/client/partitioner.h"
#include "ps/client/placement.h"

namespace muster {
namespace {

using PartitionerSpec = proto::JobStrategy::ParameterServer::Partitioner;

absl::StatusOr<std::shared_ptr<const Partitioner>> MakePartitioner(
    const PartitionerSpec& spec) {
  std::unique_ptr<Partitioner> partitioner;
  switch (spec.kind_case()) {
    case PartitionerSpec::kFixedShards: {
      ASSIGN_OR_RETURN(partitioner, MakeFixedShardsPartitioner(
                                        spec.fixed_shards().num_shards()));
      break;
    }
    case PartitionerSpec::kMinSize: {
      MinSizePartitionerOptions options;
      if (spec.min_size().has_min_shard_bytes()) {
        options.min_shard_bytes = spec.min_size().min_shard_bytes();
      }
      if (spec.min_size().has_max_shards()) {
        options.max_shards = spec.min_size().max_shards();
      }
      ASSIGN_OR_RETURN(partitioner, MakeMinSizePartitioner(options));
      break;
    }
    case PartitionerSpec::kMaxSize: {
      MaxSizePartitionerOptions options;
      options.max_shard_bytes = spec.max_size().max_shard_bytes();
      if (spec.max_size().has_max_shards()) {
        options.max_shards = spec.max_size().max_shards();
      }
      ASSIGN_OR_RETURN(partitioner, MakeMaxSizePartitioner(options));
      break;
    }
    case PartitionerSpec::KIND_NOT_SET:
      break;
  }
  return std::shared_ptr<const Partitioner>(std::move(partitioner));
}

}  // namespace

StrategyFactory JobStrategyFactory(Task* task) {
  return [task](const ResolvedJob& job)
             -> absl::StatusOr<std::unique_ptr<Strategy>> {
    const proto::JobStrategy& strategy = job.job().strategy();
    const bool has_servers = task->options().config.HasParameterServers();
    const bool wants_servers = strategy.has_parameter_server();
    if (!has_servers && !wants_servers) {
      return SynchronousStrategyFactory(task)(job);
    }
    if (!has_servers) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the job needs parameter servers, and this cluster has none: ",
          "TF_CONFIG's \"cluster\" needs a \"ps\" and a \"worker\" list. Or ",
          "start it with launch, or take `strategy` out of the job file"));
    }
    if (!wants_servers &&
        strategy.kind_case() != proto::JobStrategy::KIND_NOT_SET) {
      return absl::InvalidArgumentError(
          "the job names another strategy than parameter_server, and this "
          "cluster has parameter servers, which would not be used");
    }
    const auto& spec = strategy.parameter_server();
    ParameterServerStrategyOptions options;
    ASSIGN_OR_RETURN(options.partitioner, MakePartitioner(spec.partitioner()));
    if (spec.has_placement() &&
        spec.placement() == proto::JobStrategy::ParameterServer::ROUND_ROBIN) {
      options.placement = PlacementPolicy::kRoundRobin;
    }
    if (spec.steps_in_flight_per_worker() > 0) {
      options.closures_in_flight = spec.steps_in_flight_per_worker();
    }
    options.evaluates_on_coordinator = spec.evaluates_on_coordinator();
    options.min_workers = spec.min_workers();
    if (spec.ps_copies() != 0) options.server_copy_count = spec.ps_copies();
    options.dispatches_batches = spec.dispatch_batches();
    options.is_synchronous = spec.synchronous();
    options.backup_worker_count = spec.backup_workers();
    options.checkpoint_dir = spec.recovery_dir();
    if (spec.has_recovery_interval_seconds()) {
      options.checkpoint_interval =
          absl::Seconds(spec.recovery_interval_seconds());
    }
    ASSIGN_OR_RETURN(std::unique_ptr<ParameterServerStrategy> made,
                     ParameterServerStrategy::Create(*task, options));
    return std::unique_ptr<Strategy>(std::move(made));
  };
}

}  // namespace muster
