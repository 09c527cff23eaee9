#ifndef COMMON_NET_STATUS_TRACE_COLLECTOR_H_
#define COMMON_NET_STATUS_TRACE_COLLECTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/rpc/channel.h"
#include "common/net/status/chrome_trace.h"

namespace muster {

// How a task's clock compares to that of this process.
struct ClockEstimate {
  int64_t offset_ns = 0;  // The task's clock minus the own.
  int64_t error_ns = 0;   // How far offset_ns may be off: half a round trip.
};

// Estimates the offset of a clock from its readings over RPCs, each between two
// of the own. The round trip of the shortest counts, as in NTP (RFC 5905):
// whenever in it the clock was read, the offset is off by at most half of it.
class ClockEstimator {
 public:
  void Add(int64_t sent_ns, int64_t read_ns, int64_t received_ns);
  const ClockEstimate& estimate() const { return estimate_; }

 private:
  ClockEstimate estimate_;
  int64_t round_trip_ns_ = -1;
};

// Records a trace of a job: of this process and of the tasks that are added.
// Not thread-safe.
class TraceCollector {
 public:
  // `task` is the name of this process ("chief"). Recording begins.
  explicit TraceCollector(std::string task);
  // Ends recording.
  ~TraceCollector();

  TraceCollector(const TraceCollector&) = delete;
  TraceCollector& operator=(const TraceCollector&) = delete;

  // True if Add() waits for a task that is not there yet. True at first.
  void set_awaits_tasks(bool awaits_tasks) { awaits_tasks_ = awaits_tasks; }

  // Begins to record in another task. One that does not answer within a few
  // seconds is left out, with a warning.
  void Add(std::string task, std::unique_ptr<Channel> channel);

  // Ends recording in all tasks, while they still exist, and keeps their spans.
  // Idempotent.
  void Collect();

  // Collects, and returns the trace as Chrome's JSON.
  std::string Json();

 private:
  struct Remote {
    std::string task;
    std::unique_ptr<Channel> channel;
    ClockEstimate at_start;
  };

  absl::StatusOr<ClockEstimate> CompareClocks(Channel& channel) const;
  absl::StatusOr<TaskTrace> CollectFrom(const Remote& remote) const;

  const std::string task_;
  bool awaits_tasks_ = true;
  std::vector<Remote> remotes_;
  std::vector<TaskTrace> traces_;  // Of this process first, once collected.
};

}  // namespace muster

#endif  // COMMON_NET_STATUS_TRACE_COLLECTOR_H_
