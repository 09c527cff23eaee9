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

// Decides what to log about a sequence of readings. Not thread-safe.
class StragglerMemory {
 public:
  // `tasks` are marked (MarkStragglers()). Returns lines.
  std::vector<std::string> Update(absl::Span<const TaskStatus> tasks,
                                  absl::Time now);

 private:
  struct Entry {
    int reading_count = 0;  // In a row.
    absl::Time named = absl::InfinitePast();
  };
  std::map<std::string, Entry> stragglers_;  // By task.
};

}  // namespace internal

// Logs which tasks slow this one down.
//
// Every few seconds it reads the status of this process (ReadStatus()). A task
// that is marked as a straggler in several readings in a row is named with the
// ratio that was measured, again every minute while it lasts, and once when it
// is over. Thread-safe.
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

  internal::StragglerMemory memory_;  // Of the loop's thread.
  TickLoop loop_;
};

}  // namespace muster

#endif  // COMMON_NET_STATUS_STRAGGLER_LOG_H_
