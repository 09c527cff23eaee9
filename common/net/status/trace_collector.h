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

// The difference between a task's clock and the clock of this process.
struct ClockEstimate {
  int64_t offset_ns = 0;  // The task's clock minus this process' clock.
  int64_t error_ns = 0;   // How far offset_ns may be off: half a round trip.
};

// Estimates the offset of another task's clock, which is read over RPCs. This
// process reads its own clock before and after each RPC. Uses the RPC with the
// shortest round trip, as in NTP (RFC 5905): the offset is off by at most half
// of that round trip, no matter when in between the other clock was read.
class ClockEstimator {
 public:
  void Add(int64_t sent_ns, int64_t read_ns, int64_t received_ns);
  const ClockEstimate& estimate() const { return estimate_; }

 private:
  ClockEstimate estimate_;
  int64_t round_trip_ns_ = -1;
};

// Records a trace of this process and of the tasks that are added.
// Not thread-safe.
class TraceCollector {
 public:
  // Starts to record. `task` is the name of this process ("chief").
  explicit TraceCollector(std::string task);
  // Ends recording.
  ~TraceCollector();

  TraceCollector(const TraceCollector&) = delete;
  TraceCollector& operator=(const TraceCollector&) = delete;

  // Sets whether Add() waits for a task that is not reachable yet. Initially
  // true.
  void set_awaits_tasks(bool awaits_tasks) { awaits_tasks_ = awaits_tasks; }

  // Starts to record in another task. If the task does not answer within a few
  // seconds, logs a warning and leaves it out.
  void Add(std::string task, std::unique_ptr<Channel> channel);

  // Ends recording in all tasks and keeps their spans. Must be called while the
  // tasks still run. Idempotent.
  void Collect();

  // Calls Collect(), and returns the trace as Chrome's JSON.
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
  // Empty until Collect(). This process is first.
  std::vector<TaskTrace> traces_;
};

}  // namespace muster

#endif  // COMMON_NET_STATUS_TRACE_COLLECTOR_H_
