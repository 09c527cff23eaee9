#ifndef COMMON_LEARN_TRAIN_TRAINING_MONITOR_H_
#define COMMON_LEARN_TRAIN_TRAINING_MONITOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/core/system/metrics.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/metric_sums.h"
#include "common/net/status/status_report.h"

namespace muster {

// Publishes the progress of one Fit() to /metrics and to the status page.
// Between samples, which are half a second or more apart, a step costs a few
// relaxed atomic operations.
//
// Not thread-safe, except that the pages can be read at any time.
class TrainingMonitor {
 public:
  // Maximal number of points in the series. Earlier points are thinned out.
  static constexpr size_t kPointsMax = 240;

  // `clock` is borrowed.
  TrainingMonitor(int epoch_count, Clock* clock);

  // `epoch` counts from 0.
  void BeginEpoch(int epoch, std::optional<int64_t> steps_expected)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Steps that ended together.
  struct Steps {
    int64_t count = 1;
    absl::Duration duration;  // Duration of one step.
    absl::Time end;
    int64_t step_in_epoch = 0;  // Step of the epoch after them.
  };
  // `sums` has the results of the epoch so far.
  void OnSteps(const Steps& steps, const MetricSums& sums)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // `logs` has the values of the epoch, including those of validation.
  void EndEpoch(const Logs& logs) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The progress at one time, from which rates are computed.
  struct Mark {
    absl::Time time;
    int64_t step_count = 0;
    int64_t example_count = 0;
  };

  // The newest point that has a given value.
  struct Newest {
    absl::Time time;
    bool is_epoch_end = false;
  };

  void Sample(absl::Time now, const Logs& values, bool is_epoch_end)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds the values whose newest points are old enough. A value at the end of
  // an epoch replaces a recent one from within the epoch.
  void AddPoint(absl::Time now, const Logs& values, bool is_epoch_end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveNewest(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<absl::Duration> TimeLeft(absl::Time now) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Keeps one of every two values of each name and doubles the interval, so
  // that the points still cover all of training. Prefers values of whole
  // epochs.
  void HalvePoints() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddStatus(StatusReport* report) const ABSL_LOCKS_EXCLUDED(mutex_);

  Clock* const clock_;
  Counter* const steps_;
  Counter* const examples_;
  DurationMetric* const step_seconds_;
  Gauge* const epoch_gauge_;
  int64_t epoch_example_count_ = 0;  // Examples of this epoch that have been
                                     // counted.
  absl::Time next_sample_ = absl::InfinitePast();

  mutable absl::Mutex mutex_;
  TrainingStatus status_ ABSL_GUARDED_BY(mutex_);
  std::deque<Mark> marks_ ABSL_GUARDED_BY(mutex_);  // The last few seconds.
  absl::Duration point_interval_ ABSL_GUARDED_BY(mutex_);
  // The key is the name of the value.
  std::map<std::string, Newest> newest_points_ ABSL_GUARDED_BY(mutex_);
  // The state of this Fit().
  std::optional<absl::Time> start_ ABSL_GUARDED_BY(mutex_);
  int first_epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  int ended_epoch_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time epoch_end_ ABSL_GUARDED_BY(mutex_);  // End of the newest epoch.

  // The state of this Fit(). Written by the thread that trains.
  std::atomic<int> epoch_{0};
  std::atomic<int64_t> step_count_{0};
  std::atomic<int64_t> example_count_{0};
  std::atomic<int64_t> step_in_epoch_{0};
  std::atomic<int64_t> steps_per_epoch_{-1};  // -1: unknown.

  const StatusSource source_;  // Reads the members above.
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_TRAINING_MONITOR_H_
