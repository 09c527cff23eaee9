#include "common/learn/strategy/local_step_loop.h"

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/learn/strategy/replica_devices.h"

namespace muster {

absl::StatusOr<std::unique_ptr<StepLoop>> LocalStepLoop::Create(
    const Graph& step, const Dataset& dataset,
    VariableSessionFactory* variables, const Options& options) {
  RETURN_IF_ERROR(dataset.status());
  ASSIGN_OR_RETURN(
      std::unique_ptr<Executable> executable,
      CompileReplicaStep(step, variables, {options.device}, /*replica=*/0,
                         {.intra_op_thread_count = options.thread_count}));
  return std::unique_ptr<StepLoop>(
      new LocalStepLoop(std::move(executable),
                        options.prefetch_batch_count > 0
                            ? dataset.Prefetch(options.prefetch_batch_count)
                            : dataset));
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
  Outcome outcome;
  while (outcome.step_count < step_count_max && !outcome.was_told_to_stop) {
    const bool is_last = is_to_stop_ && is_to_stop_();
    if (iterator_ == nullptr) {
      ASSIGN_OR_RETURN(iterator_, dataset_.MakeIterator({}, position_.pass));
    }
    ASSIGN_OR_RETURN(const bool has_element, iterator_->Next(&element_));
    if (!has_element) {
      iterator_ = nullptr;
      ++position_.pass;
      position_.element = 0;
      outcome.end_of_data = true;
      break;
    }
    // Step numbers never restart, so that each step draws its own random
    // numbers.
    const RunOptions options{.step_seed =
                                 static_cast<uint64_t>(position_.step++)};
    ++position_.element;
    RETURN_IF_ERROR(step_->Run(element_, options, &results_));
    ++outcome.step_count;
    RETURN_IF_ERROR(on_step(results_));
    outcome.was_told_to_stop = is_last;
  }
  return outcome;
}

absl::Status LocalStepLoop::Seek(const StepPosition& position) {
  ASSIGN_OR_RETURN(iterator_, dataset_.MakeIterator({}, position.pass));
  for (int64_t i = 0; i < position.element; ++i) {
    ASSIGN_OR_RETURN(const bool has_element, iterator_->Next(&element_));
    if (has_element) continue;
    return absl::DataLossError(
        absl::StrCat("training continues after batch ", position.element,
                     " of the data, which has only ", i,
                     " batches: it is not the data that training began with"));
  }
  position_ = position;
  return absl::OkStatus();
}

}  // namespace muster
