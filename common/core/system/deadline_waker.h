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
// Abseil's own timed waits sleep on the realtime clock: if that clock is set
// back by an hour, they last an hour longer. Here the waiting threads wait
// without a timeout. One thread of the process sleeps until the earliest
// deadline by the monotonic clock, and then makes the condition of that wait
// true.
//
// Thread-safe.
class DeadlineWaker {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Returns the waker of this process, and starts its thread on first use. A
  // forked child gets its own. Lives as long as the process.
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
  // Ends the waits whose deadline is reached. Returns the time of the next
  // check.
  TimePoint EndDueWaits();

  // Locked after the mutexes of waits, unless those are locked by TryLock().
  std::mutex mutex_;
  std::condition_variable earlier_deadline_;
  std::set<std::pair<TimePoint, Wait*>> waits_;
  TimePoint next_look_ = TimePoint::max();
};

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_DEADLINE_WAKER_H_
