#ifndef COMMON_NET_STATUS_STRAGGLER_LOG_H_
#define COMMON_NET_STATUS_STRAGGLER_LOG_H_

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/system/clock.h"
#include "common/net/rpc/tick_loop.h"
#include "common/net/status/status_report.h"

namespace muster {

namespace internal {

// Decides what to log for a sequence of status readings. Not thread-safe.
class StragglerMemory {
 public:
  // Adds a reading at `now`. `tasks` must be marked (MarkStragglers()). Returns
  // the lines to log.
  std::vector<std::string> Update(absl::Span<const TaskStatus> tasks,
                                  absl::Time now);

 private:
  struct Entry {
    int reading_count = 0;  // Readings in a row.
    absl::Time named = absl::InfinitePast();
  };
  std::map<std::string, Entry> stragglers_;  // By task.
};

}  // namespace internal

// Logs which tasks slow this one down.
//
// Reads the status of this process (ReadStatus()) every few seconds. If a task
// is marked as a straggler in several readings in a row, logs it with the
// measured ratio, at once and then every minute. Logs a line when the task is
// no longer slow. Thread-safe.
class StragglerLog {
 public:
  struct Options {
    absl::Duration interval = absl::Seconds(5);
    Clock* clock = Clock::Real();  // Borrowed.
  };

  explicit StragglerLog(Options options);
  StragglerLog() : StragglerLog(Options()) {}

 private:
  absl::Time Look(const TickLoop::Turn& turn);

  internal::StragglerMemory memory_;  // Used on the loop's thread only.
  TickLoop loop_;
};

}  // namespace muster

#endif  // COMMON_NET_STATUS_STRAGGLER_LOG_H_
