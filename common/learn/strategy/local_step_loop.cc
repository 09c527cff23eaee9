#include "common/learn/strategy/local_step_loop.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/runtime/step_clock.h"
#include "common/core/base/status_macros.h"
#include "common/learn/strategy/input/pinned_batches.h"
#include "common/learn/strategy/replica_devices.h"

namespace muster {

absl::StatusOr<std::unique_ptr<StepLoop>> LocalStepLoop::Create(
    const Graph& step, const Dataset& dataset,
    VariableSessionFactory* variables, const Options& options) {
  ASSIGN_OR_RETURN(ShardingPlan plan, PlanSharding({.dataset = dataset}));
  ASSIGN_OR_RETURN(
      std::unique_ptr<Executable> executable,
      CompileReplicaStep(step, variables, {options.device}, /*replica=*/0,
                         {.intra_op_thread_count = options.thread_count}));
  if (executable->overlaps_steps()) {
    RETURN_IF_ERROR(executable->MeasureIdleTime());
  }
  if (options.prefetch_batch_count > 0) {
    // The thread that prefetches pins, too.
    if (options.device != nullptr) {
      plan.dataset = InPinnedMemory(plan.dataset, options.device);
    }
    plan.dataset = plan.dataset.Prefetch(options.prefetch_batch_count);
  }
  return std::unique_ptr<StepLoop>(
      new LocalStepLoop(std::move(executable), std::move(plan)));
}

LocalStepLoop::LocalStepLoop(std::unique_ptr<Executable> step,
                             ShardingPlan plan)
    : step_(std::move(step)), plan_(std::move(plan)) {
  const absl::Span<const VariableUse> uses = step_->variable_uses();
  const bool changes_variables =
      std::any_of(uses.begin(), uses.end(),
                  [](const VariableUse& use) { return use.is_updated; });
  if (!changes_variables) may_overlap_ = [](int64_t) { return true; };
}

absl::StatusOr<StepLoop::Outcome> LocalStepLoop::Run(int64_t step_count_max,
                                                     OnStep on_step) {
  absl::StatusOr<Outcome> outcome = RunSteps(step_count_max, on_step);
  // A later attempt needs all of the data, not the rest of it.
  if (!outcome.ok()) {
    iterator_ = nullptr;
    position_.element = 0;
  }
  return outcome;
}

absl::StatusOr<StepLoop::Outcome> LocalStepLoop::RunSteps(
    int64_t step_count_max, OnStep on_step) {
  // What the caller did meanwhile is not part of training.
  if (step_->step_clock() != nullptr) step_->step_clock()->Restart();
  Outcome outcome;
  absl::Status status;
  bool is_last = false;
  while (true) {
    const bool wants_more =
        status.ok() && !is_last && !outcome.end_of_data &&
        outcome.step_count + unfinished_count_ < step_count_max;
    if (wants_more && MayBegin()) {
      const bool was_told_to_stop = is_to_stop_ && is_to_stop_();
      const absl::StatusOr<bool> has_begun = BeginStep();
      // Earlier steps are finished first, as if this one came after them.
      status.Update(has_begun.status());
      outcome.end_of_data = has_begun.ok() && !*has_begun;
      is_last = was_told_to_stop && has_begun.ok() && *has_begun;
    } else if (unfinished_count_ > 0) {
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

std::optional<double> LocalStepLoop::DeviceIdleShare() const {
  if (step_->step_clock() == nullptr) return std::nullopt;
  const StepClock::Times& times = step_->step_clock()->times();
  if (times.total <= absl::ZeroDuration()) return std::nullopt;
  return absl::FDivDuration(times.idle, times.total);
}

bool LocalStepLoop::MayBegin() const {
  if (unfinished_count_ == 0) return true;
  return step_->overlaps_steps() &&
         unfinished_count_ < Executable::kStartedMax && may_overlap_ &&
         may_overlap_(unfinished_count_);
}

absl::StatusOr<bool> LocalStepLoop::BeginStep() {
  if (iterator_ == nullptr) {
    ASSIGN_OR_RETURN(iterator_, plan_.MakeIterator(position_.pass));
  }
  ASSIGN_OR_RETURN(const bool has_element, iterator_->Next(&element_));
  if (!has_element) return false;
  // Step numbers never restart, so that each step draws its own random numbers.
  const RunOptions options{
      .step_seed = static_cast<uint64_t>(position_.step + unfinished_count_)};
  RETURN_IF_ERROR(step_->overlaps_steps()
                      ? step_->Start(element_, options)
                      : step_->Run(element_, options, &results_));
  ++unfinished_count_;
  return true;
}

absl::Status LocalStepLoop::FinishStep(OnStep on_step) {
  absl::Status finished;
  if (step_->overlaps_steps()) finished = step_->Finish(&results_);
  unfinished_count_ = step_->started_count();
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
  unfinished_count_ = 0;
  return status;
}

absl::Status LocalStepLoop::Seek(const StepPosition& position) {
  ASSIGN_OR_RETURN(iterator_,
                   plan_.MakeIteratorAfter(position.pass, position.element));
  position_ = position;
  return absl::OkStatus();
}

}  // namespace muster
