#ifndef COORDINATOR_CREDIT_WINDOW_H_
#define COORDINATOR_CREDIT_WINDOW_H_

#include <cstdint>

#include "absl/time/time.h"

namespace muster {

// How many closures one worker may hold, so that it never waits for the
// network and yet hoards no work that others could do.
//
// The window holds a fixed time of work at the pace the worker has shown: deep
// for closures of a microsecond, two for closures of a second. Long round trips
// are covered because that time is many of them.
class CreditWindow {
 public:
  struct Options {
    absl::Duration work_ahead = absl::Milliseconds(20);
    int closures_max = 4096;
    int closures_at_start = 8;  // Before the pace is known.
  };

  // `runner_count` closures run at once on the worker.
  CreditWindow(int runner_count, const Options& options)
      : runner_count_(runner_count), options_(options) {}

  // `count` closures have taken `busy` together.
  void Observe(int64_t count, absl::Duration busy);

  // At least two for each runner: one to run, one to run next.
  int size() const;

  // Zero while unknown.
  absl::Duration closure_time() const { return closure_time_; }

 private:
  int runner_count_;
  Options options_;
  absl::Duration closure_time_ = absl::ZeroDuration();
};

}  // namespace muster

#endif  // COORDINATOR_CREDIT_WINDOW_H_
