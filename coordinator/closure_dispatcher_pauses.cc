// How a dispatcher stops handing out closures: to all workers, for checkpoints
// and rollbacks, or to one of them, for good.
#include <algorithm>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/log.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/worker_record.h"

namespace muster {

absl::Status ClosureDispatcher::Drain(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  const absl::Time started = clock_->Now();
  ++drain_count_;
  queue_.RecallUnstarted();
  loop_.Wake();
  const bool is_in_time = Await(&ClosureDispatcher::IsDrained, deadline);
  if (queue_.in_flight_count() == 0 && !is_suspended_ && !is_aborted_) {
    return absl::OkStatus();
  }
  --drain_count_;
  loop_.Wake();
  if (!is_in_time) {
    return TimedOut("the end of all steps under way", clock_->Now() - started);
  }
  return absl::AbortedError(
      "steps cannot end: a parameter server is lost, or the job is over");
}

void ClosureDispatcher::Undrain() {
  absl::MutexLock lock(&mutex_);
  --drain_count_;
  loop_.Wake();
}

absl::Status ClosureDispatcher::DrainWorker(
    int worker, absl::AnyInvocable<void()> on_left) {
  absl::MutexLock lock(&mutex_);
  WorkerRecord& record = records_[worker];
  if (record.state != WorkerRecord::State::kOpen) {
    return absl::FailedPreconditionError(
        absl::StrCat(channel(worker).peer(), " is ",
                     record.state == WorkerRecord::State::kEnded
                         ? "no part of the job any more"
                         : "not connected",
                     "; there is nothing to drain"));
  }
  const bool others_stay = std::any_of(
      records_.begin(), records_.end(), [&](const WorkerRecord& other) {
        return &other != &record && !other.is_leaving &&
               other.state == WorkerRecord::State::kOpen;
      });
  if (!others_stay) {
    return absl::FailedPreconditionError(absl::StrCat(
        channel(worker).peer(),
        " is the only worker that is connected: without it no worker trains. "
        "End "
        "the job with musterctl stop, or start another worker first"));
  }
  if (!record.is_leaving) LOG(INFO) << channel(worker).peer() << " is drained";
  record.is_leaving = true;
  record.on_left.push_back(std::move(on_left));
  queue_.SetPaused(worker, true);
  queue_.RecallUnstarted(worker);
  loop_.Wake();
  return absl::OkStatus();
}

void ClosureDispatcher::Suspend() {
  absl::MutexLock lock(&mutex_);
  is_suspended_ = true;
}

void ClosureDispatcher::Resume() {
  absl::MutexLock lock(&mutex_);
  is_suspended_ = false;
  // What they could not reach is there again.
  for (WorkerRecord& record : records_) {
    record.trouble_count = 0;
    record.paused_until = absl::InfinitePast();
  }
  loop_.Wake();
}

ClosureIds ClosureDispatcher::RollBack(const RollbackWork& work) {
  absl::MutexLock lock(&mutex_);
  generation_ = work.generation;
  for (WorkerRecord& record : records_) Renew(&record);
  if (!work.failure.ok()) queue_.FailAll(work.failure);
  loop_.Wake();
  return queue_.RollBack(work.kept);
}

void ClosureDispatcher::Renew(WorkerRecord* record) {
  if (record->state == WorkerRecord::State::kEnded ||
      record->state == WorkerRecord::State::kClosed) {
    return;
  }
  if (record->state == WorkerRecord::State::kOpen) {
    queue_.WorkerReleased(record->worker);
    record->is_renewed = true;
  }
  streams_[record->worker]->Renew(record->session);
  record->BeginAnew();
}

}  // namespace muster
