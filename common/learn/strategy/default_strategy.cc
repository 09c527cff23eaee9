#include "common/learn/strategy/default_strategy.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph.h"
#include "common/core/base/status_macros.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/local_step_loop.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/strategy/synchronous/local_replicas.h"

namespace muster {

absl::StatusOr<std::unique_ptr<DefaultStrategy>> DefaultStrategy::Create(
    const DefaultStrategyOptions& options) {
  if (options.thread_count < 0 || options.prefetch_batch_count < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "default strategy: thread_count is ", options.thread_count,
        " and prefetch_batch_count is ", options.prefetch_batch_count,
        "; both must be at least 0"));
  }
  DefaultStrategyOptions resolved = options;
  if (resolved.thread_count == 0) {
    resolved.thread_count =
        std::max<int>(1, std::thread::hardware_concurrency());
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ReplicaGroup> group, MakeLocalReplicas(1));
  return std::unique_ptr<DefaultStrategy>(
      new DefaultStrategy(std::move(group), resolved));
}

DefaultStrategy::DefaultStrategy(std::unique_ptr<ReplicaGroup> group,
                                 const DefaultStrategyOptions& options)
    : ReplicaOperations(
          group.get(), /*mirrored=*/nullptr, &variables_,
          {.runner = {.intra_op_thread_count = options.thread_count},
           .input = {.prefetch_step_count = options.prefetch_batch_count}}),
      options_(options),
      group_(std::move(group)) {}

absl::StatusOr<std::unique_ptr<StepLoop>> DefaultStrategy::CreateLoop(
    const Graph& step, const Dataset& dataset, LoopKind) {
  return LocalStepLoop::Create(
      step, dataset, &variables_,
      {.thread_count = options_.thread_count,
       .prefetch_batch_count = options_.prefetch_batch_count});
}

}  // namespace muster
