#ifndef COMMON_NET_RPC_TICK_LOOP_H_
#define COMMON_NET_RPC_TICK_LOOP_H_

#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"

namespace muster {

// A thread that does its owner's periodic work. Runs a function at every tick,
// after Wake(), and at the time that the function returned.
//
// Thread-safe.
class TickLoop {
 public:
  struct Turn {
    absl::Time now;
    // True if a tick interval has passed since the last turn with `is_tick`.
    bool is_tick = false;
  };
  // Returns the latest time at which it must run again; absl::InfiniteFuture()
  // if the next tick is early enough. Runs on the loop's thread, without a
  // lock.
  using Work = std::function<absl::Time(const Turn& turn)>;

  // `clock` is borrowed. Nothing runs before Start().
  TickLoop(absl::Duration interval, Work work, Clock* clock)
      : interval_(interval), work_(std::move(work)), clock_(clock) {}
  ~TickLoop() { Stop(); }

  TickLoop(const TickLoop&) = delete;
  TickLoop& operator=(const TickLoop&) = delete;

  absl::Duration interval() const { return interval_; }
  Clock* clock() const { return clock_; }

  // Starts the thread, whose first turn begins at once. Call it once.
  void Start();

  // Requests a turn soon. Takes only a lock that the loop owns, so the caller
  // may hold any other.
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until the current turn has ended. No other turn follows. Must not be
  // called on the loop's thread, nor by two threads at a time.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsWakeable() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return wake_ || is_stopping_;
  }

  const absl::Duration interval_;
  const Work work_;
  Clock* const clock_;

  absl::Mutex mutex_;
  bool wake_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // Started and joined by the owner.
};

}  // namespace muster

#endif  // COMMON_NET_RPC_TICK_LOOP_H_
