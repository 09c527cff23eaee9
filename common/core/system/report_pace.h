#ifndef COMMON_CORE_SYSTEM_REPORT_PACE_H_
#define COMMON_CORE_SYSTEM_REPORT_PACE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace muster {

// Decides when a long wait logs its next line: at intervals that grow with the
// duration of the wait, up to a minute.
//
//   ReportPace pace(clock->Now(), absl::Seconds(5));
//   while (...) {
//     ... wait until pace.next() ...
//     if (pace.IsDue(clock->Now())) ... write a line ...
//   }
//
// Not thread-safe.
class ReportPace {
 public:
  // Returns the interval to the next line of a wait that has lasted for
  // `waited`.
  static absl::Duration IntervalAfter(absl::Duration waited,
                                      absl::Duration first_interval) {
    return std::max(first_interval, std::min(waited, kIntervalMax));
  }

  // The first line is due `interval` after `start`. An interval longer than a
  // minute does not grow.
  ReportPace(absl::Time start, absl::Duration interval)
      : start_(start), interval_(interval), next_(start + interval) {}

  absl::Time next() const { return next_; }

  // Returns true if a line is due, and then sets when the next one is.
  bool IsDue(absl::Time now) {
    if (now < next_) return false;
    next_ = now + IntervalAfter(now - start_, interval_);
    return true;
  }

 private:
  static constexpr absl::Duration kIntervalMax = absl::Minutes(1);

  absl::Time start_;
  absl::Duration interval_;
  absl::Time next_;
};

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_REPORT_PACE_H_
