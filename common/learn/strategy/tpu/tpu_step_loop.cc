#include "common/learn/strategy/tpu/tpu_step_loop.h"

#include <algorithm>

#include "common/core/base/status_macros.h"

namespace muster {
namespace {

bool HaveSameTypes(const Element& a, const Element& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const Tensor& x, const Tensor& y) { return x.type() == y.type(); });
}

}  // namespace

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
    next_.clear();
    position_.element = 0;
  }
  return outcome;
}

absl::StatusOr<StepLoop::Outcome> TpuStepLoop::RunSteps(int64_t step_count_max,
                                                        OnStep on_step) {
  Outcome outcome;
  absl::Status status;
  while (true) {
    const int64_t left =
        step_count_max - outcome.step_count - step_->started_step_count();
    const bool wants_more = status.ok() && !outcome.was_told_to_stop &&
                            !outcome.end_of_data && left > 0;
    if (wants_more && MayBegin()) {
      // After an error, the loop finishes the steps that have begun.
      status.Update(DrawGroup(left, &outcome));
      if (group_.empty()) continue;
      status.Update(step_->Start(
          group_,
          static_cast<uint64_t>(position_.step + step_->started_step_count())));
    } else if (step_->started_count() > 0) {
      ASSIGN_OR_RETURN(const int64_t step_count, FinishGroup(on_step));
      outcome.step_count += step_count;
    } else {
      break;
    }
  }
  RETURN_IF_ERROR(status);
  if (outcome.end_of_data) {
    iterator_ = nullptr;
    ++position_.pass;
    position_.element = 0;
  }
  return outcome;
}

bool TpuStepLoop::MayBegin() const {
  if (step_->started_count() == 0) return true;
  return step_->started_count() < kStartedMax && may_overlap_ &&
         may_overlap_(step_->started_step_count());
}

absl::Status TpuStepLoop::DrawGroup(int64_t count_max, Outcome* outcome) {
  group_.clear();
  const int count = step_->GroupSize(
      static_cast<int>(std::min<int64_t>(count_max, group_size_)));
  while (static_cast<int>(group_.size()) < count &&
         !outcome->was_told_to_stop) {
    if (next_.empty()) {
      if (iterator_ == nullptr) {
        ASSIGN_OR_RETURN(iterator_, plan_.MakeIterator(position_.pass));
      }
      ASSIGN_OR_RETURN(const bool has_element, iterator_->Next(&next_));
      if (!has_element) {
        next_.clear();
        outcome->end_of_data = true;
        break;
      }
    }
    if (!group_.empty() && !HaveSameTypes(group_.front(), next_)) break;
    outcome->was_told_to_stop = is_to_stop_ && is_to_stop_();
    group_.push_back(std::move(next_));
    next_.clear();
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TpuStepLoop::FinishGroup(OnStep on_step) {
  ASSIGN_OR_RETURN(const auto results, step_->Finish());
  absl::Status status;
  for (const std::vector<Tensor>& of_step : results) {
    ++position_.step;
    ++position_.element;
    if (status.ok()) status = on_step(of_step);
  }
  if (status.ok()) return static_cast<int64_t>(results.size());
  while (step_->started_count() > 0) {
    position_.step += step_->started_step_count();
    // Their results are not read.
    (void)step_->Finish();
  }
  return status;
}

absl::Status TpuStepLoop::Seek(const StepPosition& position) {
  ASSIGN_OR_RETURN(iterator_,
                   plan_.MakeIteratorAfter(position.pass, position.element));
  next_.clear();
  position_ = position;
  return absl::OkStatus();
}

}  // namespace muster
