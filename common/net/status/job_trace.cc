#include "common/net/status/job_trace.h"

#include <utility>

namespace muster {

JobTrace& JobTrace::OfProcess() {
  static auto* const trace = new JobTrace;
  return *trace;
}

void JobTrace::SetTask(std::string task) {
  absl::MutexLock lock(&mutex_);
  task_ = std::move(task);
}

void JobTrace::SetOthers(AddOthers add) {
  absl::MutexLock lock(&mutex_);
  add_others_ = std::move(add);
  if (!collector_.has_value()) return;
  if (add_others_ != nullptr) {
    add_others_(&*collector_);
  } else {
    collector_->Collect();
  }
}

absl::Status JobTrace::Begin() {
  absl::MutexLock lock(&mutex_);
  if (collector_.has_value()) {
    return absl::FailedPreconditionError(
        "a trace of the job is being recorded: for --trace, musterctl trace or "
        "profile_batch");
  }
  collector_.emplace(task_);
  if (add_others_ == nullptr) return absl::OkStatus();
  // The job is already running, so a task that does not answer is lost.
  collector_->set_awaits_tasks(false);
  add_others_(&*collector_);
  collector_->set_awaits_tasks(true);
  return absl::OkStatus();
}

absl::StatusOr<std::string> JobTrace::End() {
  absl::MutexLock lock(&mutex_);
  if (!collector_.has_value()) {
    return absl::FailedPreconditionError("no trace is being recorded");
  }
  std::string json = collector_->Json();
  collector_.reset();
  return json;
}

}  // namespace muster
