#ifndef COMMON_CORE_BASE_CLOCK_H_
#define COMMON_CORE_BASE_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace muster {

// The seam through which everything that waits learns the time, so that tests
// and simulations can own it.
//
// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Never goes back. Its zero has no meaning beyond this process.
  virtual absl::Time Now() = 0;

  // Waits until `condition` holds or Now() reaches `deadline`, and returns
  // whether `condition` holds. `mutex` is held by the caller, released while
  // waiting and held again on return, as in absl::Mutex::AwaitWithDeadline.
  virtual bool AwaitWithDeadline(absl::Mutex* mutex,
                                 const absl::Condition& condition,
                                 absl::Time deadline)
      ABSL_SHARED_LOCKS_REQUIRED(mutex) = 0;

  // The machine's monotonic clock. Lives as long as the process.
  static Clock* Real();
};

// Time that moves only when told to. Waiters wake when their condition comes
// true or when Advance() passes their deadline.
class SimulatedClock final : public Clock {
 public:
  absl::Time Now() override;
  bool AwaitWithDeadline(absl::Mutex* mutex, const absl::Condition& condition,
                         absl::Time deadline) override;
  void Advance(absl::Duration duration);

 private:
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch();
};

}  // namespace muster

#endif  // COMMON_CORE_BASE_CLOCK_H_
