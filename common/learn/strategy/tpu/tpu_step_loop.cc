#include "common/learn/strategy/tpu/tpu_step_loop.h"

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {

absl::StatusOr<std::unique_ptr<StepLoop>> TpuStepLoop::Create(
    const Graph& step, const Dataset& dataset, LoopKind kind,
    std::shared_ptr<TpuSystem> system, TpuVariableStore* variables,
    const Options& options) {
  ASSIGN_OR_RETURN(ShardingPlan plan, PlanSharding({.dataset = dataset}));
  ASSIGN_OR_RETURN(std::unique_ptr<TpuStep> compiled,
                   TpuStep::Create(step, std::move(system), variables,
                                   kind == LoopKind::kPredict
                                       ? TpuStep::Results::kConcatenated
                                       : TpuStep::Results::kSummed));
  if (options.prefetch_batch_count > 0) {
    plan.dataset = plan.dataset.Prefetch(options.prefetch_batch_count);
  }
  return std::unique_ptr<StepLoop>(
      new TpuStepLoop(std::move(compiled), std::move(plan)));
}

TpuStepLoop::TpuStepLoop(std::unique_ptr<TpuStep> step, ShardingPlan plan)
    : step_(std::move(step)), plan_(std::move(plan)) {
  if (!step_->changes_variables()) may_overlap_ = [](int64_t) { return true; };
}

absl::StatusOr<StepLoop::Outcome> TpuStepLoop::Run(int64_t step_count_max,
                                                   OnStep on_step) {
  absl::StatusOr<Outcome> outcome = RunSteps(step_count_max, on_step);
  // A later attempt needs all of the data, not the rest of it.
  if (!outcome.ok()) {
    iterator_ = nullptr;
    position_.element = 0;
  }
  return outcome;
}

absl::StatusOr<StepLoop::Outcome> TpuStepLoop::RunSteps(int64_t step_count_max,
                                                        OnStep on_step) {
  Outcome outcome;
  absl::Status status;
  bool is_last = false;
  while (true) {
    const bool wants_more =
        status.ok() && !is_last && !outcome.end_of_data &&
        outcome.step_count + step_->started_count() < step_count_max;
    if (wants_more && MayBegin()) {
      const bool was_told_to_stop = is_to_stop_ && is_to_stop_();
      const absl::StatusOr<bool> has_begun = BeginStep();
      // Earlier steps are finished first, as if this one came after them.
      status.Update(has_begun.status());
      outcome.end_of_data = has_begun.ok() && !*has_begun;
      is_last = was_told_to_stop && has_begun.ok() && *has_begun;
    } else if (step_->started_count() > 0) {
      RETURN_IF_ERROR(FinishStep(on_step));
      ++outcome.step_count;
    } else {
      break;
    }
  }
  RETURN_IF_ERROR(status);
  outcome.was_told_to_stop = is_last;
  if (outcome.end_of_data) {
    iterator_ = nullptr;
    ++position_.pass;
    position_.element = 0;
  }
  return outcome;
}

bool TpuStepLoop::MayBegin() const {
  const int unfinished_count = step_->started_count();
  if (unfinished_count == 0) return true;
  return unfinished_count < kStartedMax && may_overlap_ &&
         may_overlap_(unfinished_count);
}

absl::StatusOr<bool> TpuStepLoop::BeginStep() {
  if (iterator_ == nullptr) {
    ASSIGN_OR_RETURN(iterator_, plan_.MakeIterator(position_.pass));
  }
  ASSIGN_OR_RETURN(const bool has_element, iterator_->Next(&element_));
  if (!has_element) return false;
  // Step numbers never restart, so that each step draws its own random numbers.
  RETURN_IF_ERROR(step_->Start(
      element_,
      static_cast<uint64_t>(position_.step + step_->started_count())));
  return true;
}

absl::Status TpuStepLoop::FinishStep(OnStep on_step) {
  const absl::Status finished = step_->Finish(&results_);
  ++position_.step;
  ++position_.element;
  RETURN_IF_ERROR(finished);
  const absl::Status status = on_step(results_);
  if (status.ok()) return status;
  while (step_->started_count() > 0) {
    // Its results are not read.
    (void)step_->Finish(&results_);
    ++position_.step;
  }
  return status;
}

absl::Status TpuStepLoop::Seek(const StepPosition& position) {
  ASSIGN_OR_RETURN(iterator_, plan_.MakeIterator(position.pass));
  for (int64_t i = 0; i < position.element; ++i) {
    ASSIGN_OR_RETURN(const bool has_element, iterator_->Next(&element_));
    if (has_element) continue;
    return absl::DataLossError(
        absl::StrCat("training continues after batch ", position.element,
                     " of the data, which has only ", i,
                     " batches: the data has changed since training began"));
  }
  position_ = position;
  return absl::OkStatus();
}

}  // namespace muster
