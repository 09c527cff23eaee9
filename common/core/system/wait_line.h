#ifndef COMMON_CORE_SYSTEM_WAIT_LINE_H_
#define COMMON_CORE_SYSTEM_WAIT_LINE_H_

#include <algorithm>
#include <ostream>

#include "absl/time/time.h"
#include "common/core/system/log.h"

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

// Marks the log lines of one wait. On a terminal, each line replaces the
// previous one, until this process logs something else. If standard error is
// not a terminal, if the process is not in the foreground, or if a line is
// longer than the terminal is wide, the lines do not replace each other.
//
//   WaitLine line;
//   while (...) LOG(INFO) << line << "waiting for " << ...;
//
// In the log, a message that begins with a carriage return replaces the
// previous one. A message of a carriage return alone ends the line.
//
// Not thread-safe.
class WaitLine {
 public:
  WaitLine() = default;
  // Ends the line on the terminal.
  ~WaitLine() {
    if (has_written_) LOG(INFO) << '\r';
  }

  WaitLine(const WaitLine&) = delete;
  WaitLine& operator=(const WaitLine&) = delete;

  friend std::ostream& operator<<(std::ostream& message, WaitLine& line) {
    line.has_written_ = true;
    return message << '\r';
  }

 private:
  bool has_written_ = false;
};

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_WAIT_LINE_H_
