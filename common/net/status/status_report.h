#ifndef COMMON_NET_STATUS_STATUS_REPORT_H_
#define COMMON_NET_STATUS_STATUS_REPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

// The state of another task, as this process observes it.
struct TaskStatus {
  enum class State {
    kConnecting,  // Not connected yet.
    kConnected,
    kLost,   // The connection was lost. The task may reconnect.
    kEnded,  // The task has left, or was notified that the job has ended.
  };

  std::string task;  // "worker 1"
  std::string address;
  State state = State::kConnecting;
  absl::Duration in_state;   // Time since `state` last changed.
  uint64_t incarnation = 0;  // 0 if unknown.
  // Why the task is not connected or cannot work; otherwise empty.
  std::string problem;

  // Set for workers that run closures.
  std::optional<int64_t> closures_in_flight;
  std::optional<int64_t> closures_done;
  // The mean time of the task's recent closures; zero if unknown.
  std::optional<absl::Duration> closure_time;
  // closure_time as a multiple of the median worker's. Set by MarkStragglers()
  // if there are several workers.
  std::optional<double> closure_time_ratio;

  // Set for parameter servers.
  std::optional<int64_t> update_count;
  std::optional<int64_t> bytes_received;
  std::optional<int64_t> bytes_sent;
  std::optional<int64_t> variable_bytes;

  // Set for synchronous tasks: the recent share of time, 0 to 1, for which this
  // process waited for the task.
  std::optional<double> waited_share;

  // Set by MarkStragglers().
  bool is_straggler = false;
};

// A wait that is in progress.
struct WaitStatus {
  std::string waiter;   // "worker 0"
  std::string awaited;  // "worker 1, worker 2"
  std::string what;     // "all-reduce of dense/kernel"
  absl::Duration elapsed;
};

// The collectives of one kind that this process has taken part in.
struct CollectiveStatus {
  std::string operation;  // "all_reduce"
  int64_t count = 0;
  // Percentiles of the durations, including the wait for other ranks.
  absl::Duration median;
  absl::Duration percentile_99;
};

struct QueueStatus {
  int64_t queued_count = 0;
  int64_t in_flight_count = 0;
  int64_t done_count = 0;
  int64_t retried_count = 0;
};

struct TrainingStatus {
  // One moment of training.
  struct Point {
    absl::Time time;
    int64_t step = 0;
    std::map<std::string, double> values;  // {"loss", 0.3}
    // True if the values are those of a whole epoch, false if they are those of
    // the epoch so far.
    bool is_epoch_end = false;
  };

  int epoch = 0;  // From 1.
  int epoch_count = 0;
  int64_t step_in_epoch = 0;
  std::optional<int64_t> steps_per_epoch;
  int64_t step_count = 0;
  int64_t example_count = 0;
  // Rates over the last few seconds; 0 if unknown.
  double steps_per_second = 0;
  double examples_per_second = 0;
  // Estimated time until the end of the last epoch; unset if unknown.
  std::optional<absl::Duration> time_left;
  // The newest values, and a sample of earlier ones.
  std::map<std::string, double> values;
  std::vector<Point> series;
};

struct CheckpointStatus {
  std::string name;  // The newest checkpoint: "checkpoint run/ckpt-3".
  absl::Time time;
  absl::Duration duration;
  int64_t count = 0;
};

// An event in the life of the tasks of a run (run_timeline.h).
struct RunEvent {
  absl::Time time;      // Of the calendar.
  std::string text;     // One line.
  absl::Duration cost;  // The time of training that it has cost.
};

struct TimelineStatus {
  std::vector<RunEvent> events;  // In order; the newest if there are many.
  int64_t event_count = 0;       // With those that are not listed.
  absl::Time begun_at = absl::InfiniteFuture();  // When training began.
  absl::Duration elapsed;                        // Since then.
  absl::Duration lost;  // The cost of all events and present absences.
  double goodput = 1;   // 1 - lost / elapsed.
};

// The state of this process at one time, collected from all StatusSources.
struct StatusReport {
  // The process is ready if there is at least one entry and all entries are OK.
  // An entry that is not OK names what is missing.
  std::vector<absl::Status> readiness;
  std::optional<TrainingStatus> training;
  std::optional<QueueStatus> queue;
  std::vector<TaskStatus> tasks;
  std::vector<WaitStatus> waits;
  std::vector<CollectiveStatus> collectives;
  std::optional<CheckpointStatus> checkpoint;
  // Of the task that leads a job.
  std::optional<TimelineStatus> timeline;
  // Where operators send requests (JobControlService); empty if requests are
  // not accepted.
  std::string control_address;
  int64_t checkpoint_failure_count = 0;
};

// Contributes to the reports of this process as long as it exists. `add` is
// called on any thread, by one thread at a time. `add` must not create or
// destroy sources, and must not take a lock that a thread holds while it
// creates or destroys a source.
class StatusSource {
 public:
  explicit StatusSource(std::function<void(StatusReport*)> add);
  ~StatusSource();

  StatusSource(const StatusSource&) = delete;
  StatusSource& operator=(const StatusSource&) = delete;

 private:
  const std::function<void(StatusReport*)> add_;
};

// Returns the reports of all sources, with stragglers marked. Thread-safe.
StatusReport ReadStatus();

// Returns OK if the process takes part in a job. Otherwise the message names
// what it waits for.
//   kUnavailable  not ready
absl::Status Readiness(const StatusReport& report);

// Marks connected tasks that slow down the others: workers whose closures take
// more than twice as long as the median worker's, and synchronous tasks for
// which this process waits more than 30% of the time.
void MarkStragglers(std::vector<TaskStatus>* tasks);

}  // namespace muster

#endif  // COMMON_NET_STATUS_STATUS_REPORT_H_
