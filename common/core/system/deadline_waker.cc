#include "common/core/system/deadline_waker.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "common/core/system/held_lock.h"

namespace muster {
namespace {

// Time until the next attempt to end a wait whose mutex another thread holds.
constexpr std::chrono::milliseconds kRetryInterval(1);

std::atomic<DeadlineWaker*> process_waker{nullptr};

}  // namespace

DeadlineWaker::DeadlineWaker() {
  // Blocks all signals in the new thread: they are for the threads of the
  // program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { RunLoop(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

DeadlineWaker* DeadlineWaker::Start() {
  auto* const waker = new DeadlineWaker;
  process_waker = waker;
  return waker;
}

DeadlineWaker& DeadlineWaker::Get() {
  // A forked child inherits the memory of the waker but not its thread, so it
  // starts its own.
  static const bool is_started = [] {
    Start();
    pthread_atfork(nullptr, nullptr, [] { process_waker = nullptr; });
    return true;
  }();
  (void)is_started;
  DeadlineWaker* waker = process_waker.load(std::memory_order_acquire);
  if (waker == nullptr) {
    static std::mutex restart;
    const std::lock_guard<std::mutex> lock(restart);
    waker = process_waker;
    if (waker == nullptr) waker = Start();
  }
  return *waker;
}

bool DeadlineWaker::Await(absl::Mutex* mutex, const absl::Condition& condition,
                          TimePoint deadline) {
  if (condition.Eval()) return true;
  Wait wait{mutex, &condition};
  const std::pair<TimePoint, Wait*> entry(deadline, &wait);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waits_.insert(entry);
    if (deadline < next_look_) earlier_deadline_.notify_one();
  }
  mutex->Await(absl::Condition(&wait, &Wait::IsOver));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waits_.erase(entry);
  }
  return condition.Eval();
}

void DeadlineWaker::RunLoop() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    next_look_ = EndDueWaits();
    if (next_look_ == TimePoint::max()) {
      earlier_deadline_.wait(lock);
    } else {
      earlier_deadline_.wait_until(lock, next_look_);
    }
  }
}

bool DeadlineWaker::TryToEnd(Wait* wait) {
  if (!wait->mutex->TryLock()) return false;
  const HeldLock lock(wait->mutex);
  wait->has_expired = true;
  return true;
}

DeadlineWaker::TimePoint DeadlineWaker::EndDueWaits() {
  const TimePoint now = std::chrono::steady_clock::now();
  TimePoint next_look = TimePoint::max();
  for (auto it = waits_.begin(); it != waits_.end();) {
    const auto [deadline, wait] = *it;
    if (deadline > now) return std::min(next_look, deadline);
    // Await() locks `mutex_` while it holds the mutex of the wait, so this
    // thread only tries to lock the latter.
    if (TryToEnd(wait)) {
      // `wait` stays valid: Await() must lock `mutex_` before it returns.
      it = waits_.erase(it);
    } else {
      next_look = now + kRetryInterval;
      ++it;
    }
  }
  return next_look;
}

}  // namespace muster
