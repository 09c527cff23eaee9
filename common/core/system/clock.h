#ifndef COMMON_CORE_SYSTEM_CLOCK_H_
#define COMMON_CORE_SYSTEM_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace muster {

// The source of time for all code that waits, so that tests and simulations can
// replace it.
//
// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Monotonic. The origin has no meaning outside this process.
  virtual absl::Time Now() = 0;

  // Blocks until `condition` holds or Now() reaches `deadline`. Returns whether
  // `condition` holds. The caller holds `mutex`, which is released while
  // waiting and held again on return, as in absl::Mutex::AwaitWithDeadline.
  virtual bool AwaitWithDeadline(absl::Mutex* mutex,
                                 const absl::Condition& condition,
                                 absl::Time deadline)
      ABSL_SHARED_LOCKS_REQUIRED(mutex) = 0;

  // The machine's monotonic clock. Lives as long as the process.
  static Clock* Real();
};

// Simulated time, which moves only when Advance() is called. Waiters wake up
// when their condition becomes true or Advance() passes their deadline.
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

#endif  // COMMON_CORE_SYSTEM_CLOCK_H_
