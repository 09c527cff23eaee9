#ifndef COMMON_CORE_BASE_REPORT_PACE_H_
#define COMMON_CORE_BASE_REPORT_PACE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace muster {

// When a wait says again what it waits for: at intervals that grow with the
// wait, up to a minute.
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
  static constexpr absl::Duration kIntervalMax = absl::Minutes(1);

  // The first line is due `interval` after `start`. A longer interval than
  // kIntervalMax does not grow.
  ReportPace(absl::Time start, absl::Duration interval)
      : start_(start), interval_(interval), next_(start + interval) {}

  absl::Time next() const { return next_; }

  // Returns true if a line is due, and then sets when the next one is.
  bool IsDue(absl::Time now) {
    if (now < next_) return false;
    next_ = now + std::max(interval_, std::min(now - start_, kIntervalMax));
    return true;
  }

 private:
  absl::Time start_;
  absl::Duration interval_;
  absl::Time next_;
};

}  // namespace muster

#endif  // COMMON_CORE_BASE_REPORT_PACE_H_
