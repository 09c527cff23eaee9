// What a dispatcher reports about its queue and its workers.
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/net/status/status_report.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/worker_record.h"

namespace muster {

void ClosureDispatcher::AddStatus(StatusReport* report) const {
  absl::MutexLock lock(&mutex_);
  const absl::Time now = clock_->Now();
  report->queue = QueueStatus{.queued_count = queue_.queued_count(),
                              .in_flight_count = queue_.in_flight_count(),
                              .done_count = queue_.finished_count(),
                              .retried_count = queue_.requeued_count()};
  for (const WorkerRecord& record : records_) {
    TaskStatus& task = report->tasks.emplace_back();
    task.task = tasks_[record.worker].ToString();
    task.address = options_.cluster.Address(tasks_[record.worker]).value_or("");
    task.incarnation = record.incarnation;
    task.in_state = now - record.state_since;
    task.problem =
        record.last_error.empty() ? record.trouble : record.last_error;
    if (record.is_leaving && record.state != WorkerRecord::State::kEnded) {
      task.problem = "is being drained";
    }
    task.closures_in_flight = queue_.in_flight_count(record.worker);
    task.closures_done = record.done_count;
    task.closure_time = queue_.closure_time(record.worker);
    switch (record.state) {
      case WorkerRecord::State::kOpen:
        task.state = TaskStatus::State::kConnected;
        break;
      case WorkerRecord::State::kEnded:
        task.state = TaskStatus::State::kEnded;
        break;
      case WorkerRecord::State::kClosed:
      case WorkerRecord::State::kOpening:
        // While a session is replaced on purpose, the worker is not lost.
        task.state = record.is_renewed ? TaskStatus::State::kConnected
                     : record.sessions_open_count == 0
                         ? TaskStatus::State::kConnecting
                         : TaskStatus::State::kLost;
        break;
    }
  }
}

std::string ClosureDispatcher::DescribeLocked() const {
  std::string text =
      absl::StrCat(queue_.queued_count(), " closures are queued");
  for (const WorkerRecord& record : records_) {
    const std::string state = queue_.DescribeWorker(record.worker);
    const std::string& why =
        record.last_error.empty() ? record.trouble : record.last_error;
    if (state.empty() && why.empty()) continue;
    absl::StrAppend(&text, "; ", channel(record.worker).peer(),
                    state.empty() ? "" : " ", state, why.empty() ? "" : ": ",
                    why);
  }
  return text;
}

std::string ClosureDispatcher::Describe() const {
  absl::MutexLock lock(&mutex_);
  return DescribeLocked();
}

absl::Status ClosureDispatcher::TimedOut(absl::string_view what,
                                         absl::Duration waited) const {
  return absl::DeadlineExceededError(absl::StrCat(
      what, " has waited ",
      absl::FormatDuration(absl::Trunc(waited, absl::Milliseconds(1))), ": ",
      DescribeLocked()));
}

}  // namespace muster
