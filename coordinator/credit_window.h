#ifndef COORDINATOR_CREDIT_WINDOW_H_
#define COORDINATOR_CREDIT_WINDOW_H_

#include <cstdint>

#include "absl/time/time.h"

namespace muster {

// The number of closures that one worker may hold: enough that it never waits
// for the network, but few enough to leave work for idle workers.
//
// The window is a fixed duration of work at the observed speed of the worker:
// many closures of a microsecond, or two closures of a second. The duration
// exceeds a round trip many times.
class CreditWindow {
 public:
  struct Options {
    absl::Duration work_ahead = absl::Milliseconds(20);
    int closures_max = 4096;
    int closures_at_start = 8;  // Before the speed is known.
  };

  // `runner_count` closures run concurrently on the worker.
  CreditWindow(int runner_count, const Options& options)
      : runner_count_(runner_count), options_(options) {}

  // Records that `count` closures took `busy` in total.
  void Observe(int64_t count, absl::Duration busy);

  // At least two for each runner: one that runs and one to run next.
  int size() const;

  // The mean time of recent closures; zero if unknown.
  absl::Duration closure_time() const { return closure_time_; }

 private:
  int runner_count_;
  Options options_;
  absl::Duration closure_time_ = absl::ZeroDuration();
};

}  // namespace muster

#endif  // COORDINATOR_CREDIT_WINDOW_H_
