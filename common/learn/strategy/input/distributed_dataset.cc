#include "common/learn/strategy/input/distributed_dataset.h"

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/learn/strategy/input/prefetched_steps.h"
#include "common/learn/strategy/input/sub_batches.h"

namespace muster {

absl::StatusOr<DistributedDataset> DistributeDataset(
    const Dataset& dataset, const InputPlacement& placement,
    const InputOptions& options) {
  ASSIGN_OR_RETURN(ShardingPlan plan, PlanSharding({.dataset = dataset,
                                                    .placement = placement,
                                                    .options = options}));
  LogPlan(plan);
  return DistributedDataset(std::move(plan), options);
}

absl::StatusOr<DistributedDataset> DistributeDatasetsFromFunction(
    const DatasetFunction& function, const InputPlacement& placement) {
  if (function == nullptr) {
    return absl::InvalidArgumentError("distributed input: no function");
  }
  ASSIGN_OR_RETURN(ShardingPlan plan,
                   PlanSharding({.path = BatchPath::kMadePerReplica,
                                 .function = function,
                                 .placement = placement}));
  LogPlan(plan);
  return DistributedDataset(std::move(plan), {.prefetch_step_count = 0});
}

absl::StatusOr<std::unique_ptr<DistributedIterator>>
DistributedDataset::MakeIterator(int64_t epoch) const {
  ASSIGN_OR_RETURN(std::unique_ptr<DatasetIterator> elements,
                   plan_.MakeIterator(epoch));
  std::unique_ptr<DistributedIterator> steps =
      DivideAmongReplicas(std::move(elements), plan_);
  if (options_.prefetch_step_count == 0) return steps;
  return PrefetchSteps(
      std::move(steps),
      {.step_count = options_.prefetch_step_count,
       .slow_input_warning = options_.slow_input_warning,
       .on_slow_input = [worker = plan_.placement.worker_index](
                            absl::Duration waited, int64_t step_count) {
         LOG(WARNING) << "worker " << worker << " has waited "
                      << absl::FormatDuration(waited)
                      << " for its dataset to give the next batch, after "
                      << step_count << " steps";
       }});
}

}  // namespace muster
