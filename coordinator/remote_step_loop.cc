#include "coordinator/remote_step_loop.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/graph/graph_codec.h"
#include "coordinator/closure_arguments.h"
#include "coordinator/per_worker_dataset.h"
#include "proto/graph.pb.h"
#include "worker/client/step_signature.h"
#include "worker/client/worker_protocol.h"

namespace muster {

absl::StatusOr<std::unique_ptr<RemoteStepLoop>> RemoteStepLoop::Create(
    std::shared_ptr<ClusterConnection> connection, const Graph& step,
    const Dataset& dataset, const Options& options, Clock* clock) {
  RETURN_IF_ERROR(dataset.status());
  if (dataset.Cardinality() == Dataset::kUnknownCardinality) {
    return absl::InvalidArgumentError(
        "nobody knows how long the data is, and every worker draws from a copy "
        "of it: Repeat() it, and say how many steps to take");
  }
  std::unique_ptr<RemoteStepLoop> loop(
      new RemoteStepLoop(std::move(connection), dataset, options, clock));
  loop->work_.function_id = loop->connection_->dispatcher().AddFunction(
      step.name, EncodeGraph(FeedFromIterator(step)).SerializeAsString());
  RETURN_IF_ERROR(loop->OpenIterators());
  loop->connection_->NoteShards();
  ServerRecovery& recovery = loop->connection_->recovery();
  loop->loop_id_ = recovery.AddLoop(loop.get());
  recovery.SaveIfDue(/*at_once=*/true);
  return loop;
}

RemoteStepLoop::RemoteStepLoop(std::shared_ptr<ClusterConnection> connection,
                               const Dataset& dataset, const Options& options,
                               Clock* clock)
    : connection_(std::move(connection)),
      dataset_(dataset),
      options_(options),
      clock_(clock),
      pass_step_count_(dataset.Cardinality()) {}

RemoteStepLoop::~RemoteStepLoop() {
  if (loop_id_ != 0) connection_->recovery().RemoveLoop(loop_id_);
  const absl::Status status = Abandon();
  if (!status.ok()) LOG(WARNING) << "a training loop ended badly: " << status;
}

absl::StatusOr<StepLoop::Outcome> RemoteStepLoop::Run(int64_t step_count_max,
                                                      OnStep on_step) {
  Outcome outcome;
  RETURN_IF_ERROR(HandOverKept(step_count_max, on_step, &outcome));
  int64_t scheduled_count = outcome.step_count;
  while (true) {
    connection_->recovery().SaveIfDue();
    if (is_to_stop_ && is_to_stop_()) {
      RETURN_IF_ERROR(FinishBegun(on_step, &outcome));
      return outcome;
    }
    while (scheduled_count < step_count_max &&
           (pass_step_count_ < 0 || steps_into_pass_ < pass_step_count_) &&
           steps_ahead_ < options_.steps_ahead_max) {
      int64_t step_count = std::min<int64_t>(steps_per_closure_,
                                             step_count_max - scheduled_count);
      if (pass_step_count_ >= 0) {
        step_count = std::min(step_count, pass_step_count_ - steps_into_pass_);
      }
      RETURN_IF_ERROR(Schedule(static_cast<int>(step_count)));
      scheduled_count += step_count;
      steps_into_pass_ += step_count;
    }
    if (scheduled_.empty()) break;
    RETURN_IF_ERROR(AwaitFront());
    RETURN_IF_ERROR(TakeFront(on_step, &outcome));
  }
  if (outcome.step_count < step_count_max) {
    outcome.end_of_data = true;
    steps_into_pass_ = 0;
  }
  return outcome;
}

absl::Status RemoteStepLoop::TakeFront(OnStep on_step, Outcome* outcome) {
  const Scheduled front = scheduled_.front();
  const absl::StatusOr<std::vector<Tensor>> results =
      connection_->dispatcher().Fetch(front.value,
                                      clock_->Now() + options_.stall_timeout);
  if (!results.ok()) {
    const absl::Status failure = Abandon();
    return failure.ok() ? results.status() : failure;
  }
  PopFront();
  const absl::Status status =
      HandOver(*results, front.step_count, on_step, outcome);
  if (!status.ok()) Abandon().IgnoreError();
  return status;
}

absl::Status RemoteStepLoop::HandOver(absl::Span<const Tensor> results,
                                      int step_count, OnStep on_step,
                                      Outcome* outcome) {
  const size_t results_per_step = results.size() / step_count;
  for (int i = 0; i < step_count; ++i) {
    ++outcome->step_count;
    RETURN_IF_ERROR(
        on_step(results.subspan(i * results_per_step, results_per_step)));
  }
  return absl::OkStatus();
}

void RemoteStepLoop::PopFront() {
  steps_ahead_ -= scheduled_.front().step_count;
  scheduled_.pop_front();
}

absl::Status RemoteStepLoop::FinishBegun(OnStep on_step, Outcome* outcome) {
  ClosureDispatcher& dispatcher = connection_->dispatcher();
  for (const Scheduled& scheduled : scheduled_) {
    dispatcher.Cancel(scheduled.value.closure_id());
  }
  RETURN_IF_ERROR(dispatcher.Join(clock_->Now() + options_.stall_timeout));
  while (!scheduled_.empty()) {
    const Scheduled front = scheduled_.front();
    PopFront();
    if (!front.value.state()->status().ok()) {
      steps_into_pass_ -= front.step_count;
      continue;
    }
    ASSIGN_OR_RETURN(
        const std::vector<Tensor> results,
        dispatcher.Fetch(front.value, clock_->Now() + options_.stall_timeout));
    RETURN_IF_ERROR(HandOver(results, front.step_count, on_step, outcome));
  }
  outcome->was_told_to_stop = true;
  return absl::OkStatus();
}

absl::Status RemoteStepLoop::HandOverKept(int64_t step_count_max,
                                          OnStep on_step, Outcome* outcome) {
  while (!kept_.empty() && outcome->step_count < step_count_max) {
    const std::vector<Tensor> results = std::move(kept_.front());
    kept_.pop_front();
    RETURN_IF_ERROR(HandOver(results, 1, on_step, outcome));
  }
  return absl::OkStatus();
}

std::shared_ptr<const void> RemoteStepLoop::OnCut() {
  auto state = std::make_shared<CutState>();
  state->kept = kept_;
  for (const Scheduled& scheduled : scheduled_) {
    if (!scheduled.value.done()) continue;
    const absl::StatusOr<std::vector<Tensor>> results =
        connection_->dispatcher().Fetch(scheduled.value,
                                        clock_->Now() + options_.stall_timeout);
    if (!results.ok()) continue;
    const size_t results_per_step = results->size() / scheduled.step_count;
    for (int i = 0; i < scheduled.step_count; ++i) {
      const auto begin = results->begin() + i * results_per_step;
      state->kept.emplace_back(begin, begin + results_per_step);
    }
  }
  state->steps_into_pass =
      steps_into_pass_ - steps_ahead_ - static_cast<int64_t>(kept_.size());
  return state;
}

void RemoteStepLoop::OnRollback(const void* state) {
  // They were cancelled with everything else.
  scheduled_.clear();
  steps_ahead_ = 0;
  kept_.clear();
  steps_into_pass_ = 0;
  if (state == nullptr) return;
  const auto* const cut = static_cast<const CutState*>(state);
  kept_ = cut->kept;
  steps_into_pass_ =
      cut->steps_into_pass + static_cast<int64_t>(cut->kept.size());
}

void RemoteStepLoop::GroupSteps(int steps_per_start) {
  steps_per_closure_ = std::clamp<int>(steps_per_start, 1, kStepsPerClosureMax);
}

absl::Status RemoteStepLoop::OpenIterators() {
  // The end of a pass is counted here, and workers just go on.
  Dataset dataset = pass_step_count_ >= 0 ? dataset_.Repeat() : dataset_;
  if (options_.prefetch_batch_count > 0) {
    dataset = dataset.Prefetch(options_.prefetch_batch_count);
  }
  ASSIGN_OR_RETURN(
      IteratorRecord record,
      EncodePerWorker(
          dataset, {.worker_count = connection_->dispatcher().worker_count()}));
  auto arguments = std::make_shared<ClosureArguments>();
  arguments->arguments.push_back(
      {.iterator_id =
           connection_->dispatcher().AddIterator(std::move(record))});
  work_.arguments = std::move(arguments);
  return absl::OkStatus();
}

absl::Status RemoteStepLoop::Schedule(int step_count) {
  work_.step_count = step_count;
  absl::StatusOr<RemoteValue> value = connection_->dispatcher().Schedule(
      work_, clock_->Now() + options_.stall_timeout);
  if (!value.ok()) {
    scheduled_.clear();
    steps_ahead_ = 0;
    return value.status();
  }
  scheduled_.push_back({*std::move(value), step_count});
  steps_ahead_ += step_count;
  return absl::OkStatus();
}

absl::Status RemoteStepLoop::AwaitFront() {
  const absl::Time started = clock_->Now();
  while (!scheduled_.front().value.state()->AwaitDone(
      clock_->Now() + options_.stall_report_interval)) {
    const absl::Duration waited = clock_->Now() - started;
    const std::string text = absl::StrCat(
        "no step has finished for ",
        absl::FormatDuration(absl::Trunc(waited, absl::Seconds(1))), ": ",
        connection_->dispatcher().Describe());
    if (waited >= options_.stall_timeout) {
      Abandon().IgnoreError();
      return absl::DeadlineExceededError(text);
    }
    LOG(WARNING) << text;
  }
  return absl::OkStatus();
}

absl::Status RemoteStepLoop::Abandon() {
  if (scheduled_.empty()) return absl::OkStatus();
  for (const Scheduled& scheduled : scheduled_) {
    connection_->dispatcher().Cancel(scheduled.value.closure_id());
  }
  scheduled_.clear();
  steps_ahead_ = 0;
  return connection_->dispatcher().Join(clock_->Now() + options_.stall_timeout);
}

}  // namespace muster
