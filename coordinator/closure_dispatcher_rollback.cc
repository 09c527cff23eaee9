// What ClosureDispatcher does for checkpoints and rollbacks.
#include <utility>

#include "coordinator/closure_dispatcher.h"

namespace muster {

absl::Status ClosureDispatcher::Drain(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  const absl::Time started = clock_->Now();
  ++drain_count_;
  queue_.RecallUnstarted();
  wake_ = true;
  const bool is_in_time = clock_->AwaitWithDeadline(
      &mutex_, absl::Condition(this, &ClosureDispatcher::IsDrained), deadline);
  if (queue_.in_flight_count() == 0 && !is_suspended_ && !is_aborted_) {
    return absl::OkStatus();
  }
  --drain_count_;
  wake_ = true;
  if (!is_in_time) {
    return TimedOut("the end of all steps under way", clock_->Now() - started);
  }
  return absl::AbortedError(
      "steps cannot end: a parameter server is lost, or the job is over");
}

void ClosureDispatcher::Undrain() {
  absl::MutexLock lock(&mutex_);
  --drain_count_;
  wake_ = true;
}

void ClosureDispatcher::Suspend() {
  absl::MutexLock lock(&mutex_);
  is_suspended_ = true;
}

void ClosureDispatcher::Resume() {
  absl::MutexLock lock(&mutex_);
  is_suspended_ = false;
  // What they could not reach is there again.
  for (WorkerLane& lane : lanes_) {
    lane.trouble_count = 0;
    lane.paused_until = absl::InfinitePast();
  }
  wake_ = true;
}

ClosureIds ClosureDispatcher::RollBack(const RollbackWork& work) {
  absl::MutexLock lock(&mutex_);
  generation_ = work.generation;
  for (WorkerLane& lane : lanes_) Renew(&lane);
  if (!work.failure.ok()) queue_.FailAll(work.failure);
  wake_ = true;
  return queue_.RollBack(work.kept);
}

uint64_t ClosureDispatcher::low_water_mark() const {
  absl::MutexLock lock(&mutex_);
  return queue_.low_water_mark();
}

ClosureIds ClosureDispatcher::succeeded() const {
  absl::MutexLock lock(&mutex_);
  return queue_.succeeded();
}

bool ClosureDispatcher::is_aborted() const {
  absl::MutexLock lock(&mutex_);
  return is_aborted_;
}

void ClosureDispatcher::Renew(WorkerLane* lane) {
  if (lane->state == WorkerLane::State::kEnded ||
      lane->state == WorkerLane::State::kClosed) {
    return;
  }
  if (lane->state == WorkerLane::State::kOpen) {
    queue_.WorkerReleased(lane->worker);
    lane->is_renewed = true;
  }
  if (lane->replaced_stream != nullptr) {
    doomed_.push_back(std::move(lane->replaced_stream));
  }
  lane->replaced_stream = std::move(lane->stream);
  lane->BeginAnew();
  lane->next_open_time = clock_->Now();
}

}  // namespace muster
