#include "common/learn/strategy/tpu/tpu_strategy.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/learn/strategy/tpu/tpu_step_loop.h"

namespace muster {

absl::StatusOr<std::unique_ptr<TpuStrategy>> TpuStrategy::Create(
    std::shared_ptr<TpuSystem> system, const TpuStrategyOptions& options) {
  if (options.prefetch_batch_count < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("tpu strategy: prefetch_batch_count is ",
                     options.prefetch_batch_count, "; expected at least 0"));
  }
  return absl::WrapUnique(new TpuStrategy(std::move(system), options));
}

TpuStrategy::TpuStrategy(std::shared_ptr<TpuSystem> system,
                         const TpuStrategyOptions& options)
    : system_(std::move(system)), options_(options), variables_(system_) {}

absl::StatusOr<std::unique_ptr<StepLoop>> TpuStrategy::CreateLoop(
    const Graph& step, const Dataset& dataset, LoopKind kind) {
  return TpuStepLoop::Create(
      step, dataset, kind, system_, &variables_,
      {.prefetch_batch_count = options_.prefetch_batch_count});
}

StrategyReport TpuStrategy::Report() const {
  return {.replica_state_bytes = variables_.DeviceBytes()};
}

}  // namespace muster
