#ifndef COMMON_CORE_SYSTEM_DEADLINE_WAKER_H_
#define COMMON_CORE_SYSTEM_DEADLINE_WAKER_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// Ends waits on absl::Mutex at deadlines of the monotonic clock.
//
// Abseil's own timed waits sleep on the realtime clock: when that is set back
// by an hour, they last an hour longer. Here one thread of the process sleeps
// until the earliest deadline, by the monotonic clock, and then makes the
// condition true on which the waiting thread waits without a timeout.
//
// Thread-safe.
class DeadlineWaker {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // The one of this process; starts its thread. A forked child gets its own.
  // Lives as long as the process.
  static DeadlineWaker& Get();

  DeadlineWaker(const DeadlineWaker&) = delete;
  DeadlineWaker& operator=(const DeadlineWaker&) = delete;

  // As absl::Mutex::AwaitWithDeadline(): blocks until `condition` holds or
  // `deadline` is reached, and returns whether `condition` holds. The caller
  // holds `mutex`.
  bool Await(absl::Mutex* mutex, const absl::Condition& condition,
             TimePoint deadline) ABSL_SHARED_LOCKS_REQUIRED(mutex);

 private:
  struct Wait {
    absl::Mutex* mutex;
    const absl::Condition* condition;
    bool has_expired ABSL_GUARDED_BY(mutex) = false;

    bool IsOver() const ABSL_SHARED_LOCKS_REQUIRED(mutex) {
      return has_expired || condition->Eval();
    }
  };

  DeadlineWaker();
  static DeadlineWaker* Start();

  void RunLoop();
  // False if another thread holds the mutex of the wait.
  static bool TryToEnd(Wait* wait);
  // Ends the waits whose deadline is reached. Returns when to look again.
  TimePoint EndDueWaits();

  // Locked after the mutexes of waits, except by TryLock().
  std::mutex mutex_;
  std::condition_variable earlier_deadline_;
  std::set<std::pair<TimePoint, Wait*>> waits_;
  TimePoint next_look_ = TimePoint::max();
};

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_DEADLINE_WAKER_H_
