#include "common/core/system/clock.h"

#include <algorithm>
#include <ctime>

#include "common/core/system/deadline_waker.h"

namespace muster {
namespace {

class MonotonicClock final : public Clock {
 public:
  absl::Time Now() override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return absl::UnixEpoch() + absl::DurationFromTimespec(now);
  }

  bool AwaitWithDeadline(absl::Mutex* mutex, const absl::Condition& condition,
                         absl::Time deadline) override
      ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    if (deadline <= Now()) return condition.Eval();
    if (deadline == absl::InfiniteFuture()) {
      mutex->Await(condition);
      return true;
    }
    return DeadlineWaker::Get().Await(
        mutex, condition,
        DeadlineWaker::TimePoint(
            absl::ToChronoNanoseconds(deadline - absl::UnixEpoch())));
  }
};

}  // namespace

Clock* Clock::Real() {
  static MonotonicClock* const clock = new MonotonicClock;
  return clock;
}

absl::Time SimulatedClock::Now() {
  absl::MutexLock lock(&mutex_);
  return now_;
}

bool SimulatedClock::AwaitWithDeadline(absl::Mutex* mutex,
                                       const absl::Condition& condition,
                                       absl::Time deadline) {
  // Advance() cannot signal the caller's mutex, so simulated time is checked
  // again every real millisecond.
  constexpr absl::Duration kPollInterval = absl::Milliseconds(1);
  while (Now() < deadline) {
    if (mutex->AwaitWithTimeout(condition, kPollInterval)) return true;
  }
  return mutex->AwaitWithTimeout(condition, absl::ZeroDuration());
}

void SimulatedClock::Advance(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  now_ += duration;
}

}  // namespace muster
