#include "coordinator/scheduled_steps.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/system/wait_line.h"

namespace muster {
absl::Status ScheduledSteps::Add(ClosureWork work) {
  work.results_come_along = true;
  absl::StatusOr<RemoteValue> value =
      dispatcher_.Schedule(work, options_.stall_timeout);
  if (!value.ok()) {
    Forget();
    return value.status();
  }
  step_count_ += work.step_count;
  scheduled_.push_back({*std::move(value), std::move(work)});
  return absl::OkStatus();
}

absl::StatusOr<ScheduledSteps::Results> ScheduledSteps::TakeFront() {
  if (const absl::Status stalled = AwaitFront(); !stalled.ok()) {
    Abandon().IgnoreError();
    return stalled;
  }
  absl::StatusOr<Results> results = Fetch(scheduled_.front());
  if (!results.ok()) {
    // The error of the queue names the cause of the first failure.
    const absl::Status failure = Abandon();
    return failure.ok() ? results.status() : failure;
  }
  PopFront();
  return results;
}

absl::Status ScheduledSteps::Settle() {
  for (const Scheduled& scheduled : scheduled_) {
    dispatcher_.Cancel(scheduled.value.closure_id());
  }
  return dispatcher_.Join(StallDeadline());
}

absl::StatusOr<std::optional<ScheduledSteps::Results>>
ScheduledSteps::TakeSettled() {
  const Scheduled front = PopFront();
  if (!front.value.state()->status().ok()) return std::optional<Results>();
  ASSIGN_OR_RETURN(Results results, Fetch(front));
  return results;
}

std::vector<ScheduledSteps::Results> ScheduledSteps::Finished() const {
  std::vector<Results> finished;
  for (const Scheduled& scheduled : scheduled_) {
    if (!scheduled.value.done()) continue;
    absl::StatusOr<Results> results = Fetch(scheduled);
    if (results.ok()) finished.push_back(*std::move(results));
  }
  return finished;
}

absl::Status ScheduledSteps::Abandon() {
  if (empty()) return absl::OkStatus();
  const absl::Status status = Settle();
  Forget();
  return status;
}

void ScheduledSteps::Forget() {
  scheduled_.clear();
  step_count_ = 0;
}

absl::Status ScheduledSteps::AwaitFront() const {
  const absl::Time started = clock_->Now();
  ReportPace pace(started, options_.stall_report_interval);
  WaitLine line;
  while (!scheduled_.front().value.state()->AwaitDone(pace.next())) {
    const absl::Time now = clock_->Now();
    if (!pace.IsDue(now)) continue;
    const absl::Duration waited = now - started;
    const std::string text = absl::StrCat(
        "no step has finished for ",
        absl::FormatDuration(absl::Trunc(waited, absl::Seconds(1))), ": ",
        dispatcher_.Describe());
    if (waited >= options_.stall_timeout) {
      return absl::DeadlineExceededError(text);
    }
    // Recovery logs what it waits for.
    if (!dispatcher_.is_suspended()) LOG(WARNING) << line << text;
  }
  return absl::OkStatus();
}

absl::StatusOr<ScheduledSteps::Results> ScheduledSteps::Fetch(
    const Scheduled& scheduled) const {
  ASSIGN_OR_RETURN(std::vector<Tensor> tensors,
                   dispatcher_.Fetch(scheduled.value, StallDeadline()));
  return Results{std::move(tensors), scheduled.work.step_count};
}

ScheduledSteps::Scheduled ScheduledSteps::PopFront() {
  Scheduled front = std::move(scheduled_.front());
  scheduled_.pop_front();
  step_count_ -= front.work.step_count;
  return front;
}

}  // namespace muster
