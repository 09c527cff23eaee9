#ifndef COMMON_NET_STATUS_RUN_TIMELINE_H_
#define COMMON_NET_STATUS_RUN_TIMELINE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/core/system/metrics.h"
#include "common/net/status/status_report.h"

namespace muster {

// The events of a run (losses, returns, rollbacks) and its goodput, for the
// log, the status page, metrics, traces and summary.json.
//
// Goodput is the share of the time since Begin() that went into steps that
// count: 1 minus the cost of all events. The cost of an event is a time of
// training: that for which all workers waited, or that of the steps that are
// computed again. The absence of one of n workers costs an n-th of its length.
//
// Equivalent to: the ML productivity goodput of a training job (Google Cloud),
// without the time before training.
//
// Thread-safe.
class RunTimeline {
 public:
  // The events that are listed. Older ones are only counted.
  static constexpr size_t kEventsMax = 1000;

  // What an event does to training.
  struct Effect {
    // The time for which all workers waited, or that of the steps that are
    // computed again.
    absl::Duration pause = absl::ZeroDuration();
    // Workers that do not train from now on, and workers that train again.
    std::vector<std::string> lost = {};
    std::vector<std::string> returned = {};
  };

  // `clock` is borrowed.
  explicit RunTimeline(Clock* clock);

  // Training can begin, with so many workers. Later calls have no effect.
  void Begin(int worker_count) ABSL_LOCKS_EXCLUDED(mutex_);

  // Continues the timeline of an earlier process of the run, which had it like
  // this. The time since then is the cost of an event with this text. Call it
  // before Begin().
  void Continue(const TimelineStatus& earlier, const std::string& text)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds events from before this process took part in the run, in front of all
  // others. They do not count in the goodput of this process.
  void AddEarlier(std::vector<RunEvent> events) ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds an event and writes it to the log. Its cost is the pause and that of
  // the absences that it ends.
  void Note(LogSeverity severity, const std::string& text, const Effect& effect)
      ABSL_LOCKS_EXCLUDED(mutex_);

  TimelineStatus status() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Adds an event. Returns its cost.
  absl::Duration Add(const std::string& text, const Effect& effect)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The status without the events, which metrics do not need.
  TimelineStatus Totals() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The cost of an absence until now.
  absl::Duration CostOfAbsence(absl::Time since, absl::Time now) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;

  mutable absl::Mutex mutex_;
  bool has_begun_ ABSL_GUARDED_BY(mutex_) = false;  // Begin() was called.
  absl::Time begun_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Time begun_on_calendar_ ABSL_GUARDED_BY(mutex_);
  std::deque<RunEvent> events_ ABSL_GUARDED_BY(mutex_);
  int64_t event_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration cost_ ABSL_GUARDED_BY(mutex_);  // Of all events.
  int worker_count_ ABSL_GUARDED_BY(mutex_) = 1;
  // By task: since when.
  std::map<std::string, absl::Time> absences_ ABSL_GUARDED_BY(mutex_);

  // Last, because they read the members above.
  const StatusSource status_source_;
  const MetricSource metric_source_;
};

}  // namespace muster

#endif  // COMMON_NET_STATUS_RUN_TIMELINE_H_
