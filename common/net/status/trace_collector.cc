#include "common/net/status/trace_collector.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/system/trace.h"
#include "common/net/cluster/task_methods.h"
#include "common/net/status/trace_service.h"
#include "proto/trace.pb.h"

namespace muster {
namespace {

constexpr absl::Duration kAnswerTimeout = absl::Seconds(10);
// Number of readings of another task's clock, at the start and again at the
// end.
constexpr int kClockReadings = 16;

absl::StatusOr<proto::TraceResponse> Ask(Channel& channel,
                                         proto::TraceRequest::Action action,
                                         bool wait_for_ready = false) {
  proto::TraceRequest request;
  request.set_action(action);
  return channel.Call<proto::TraceResponse>(
      kTraceTaskMethod, request,
      {.timeout = kAnswerTimeout, .wait_for_ready = wait_for_ready});
}

}  // namespace

void ClockEstimator::Add(int64_t sent_ns, int64_t read_ns,
                         int64_t received_ns) {
  const int64_t round_trip_ns = received_ns - sent_ns;
  if (round_trip_ns_ >= 0 && round_trip_ns >= round_trip_ns_) return;
  round_trip_ns_ = round_trip_ns;
  estimate_.offset_ns = read_ns - (sent_ns + round_trip_ns / 2);
  estimate_.error_ns = (round_trip_ns + 1) / 2;
}

TraceCollector::TraceCollector(std::string task) : task_(std::move(task)) {
  StartTrace();
}

TraceCollector::~TraceCollector() { StopTrace(); }

absl::StatusOr<ClockEstimate> TraceCollector::CompareClocks(
    Channel& channel) const {
  ClockEstimator estimator;
  for (int i = 0; i < kClockReadings; ++i) {
    const int64_t sent_ns = TraceClockNanos();
    ASSIGN_OR_RETURN(const proto::TraceResponse response,
                     Ask(channel, proto::TraceRequest::CLOCK));
    estimator.Add(sent_ns, response.now_ns(), TraceClockNanos());
  }
  return estimator.estimate();
}

void TraceCollector::Add(std::string task, std::unique_ptr<Channel> channel) {
  const absl::StatusOr<proto::TraceResponse> started =
      Ask(*channel, proto::TraceRequest::START, awaits_tasks_);
  absl::StatusOr<ClockEstimate> clock =
      started.ok() ? CompareClocks(*channel) : started.status();
  if (!clock.ok()) {
    LOG(WARNING) << "the trace will be without " << task << ": "
                 << clock.status().message();
    return;
  }
  remotes_.push_back({.task = std::move(task),
                      .channel = std::move(channel),
                      .at_start = *clock});
}

absl::StatusOr<TaskTrace> TraceCollector::CollectFrom(
    const Remote& remote) const {
  ASSIGN_OR_RETURN(const ClockEstimate clock, CompareClocks(*remote.channel));
  ASSIGN_OR_RETURN(proto::TraceResponse spans,
                   Ask(*remote.channel, proto::TraceRequest::STOP));
  RETURN_IF_ERROR(CheckSpans(spans));
  // The clocks may have drifted apart. The result is the middle between the
  // first and the last estimate, and the error covers both.
  const int64_t drift_ns =
      std::abs(clock.offset_ns - remote.at_start.offset_ns);
  return TaskTrace{
      .task = remote.task,
      .spans = std::make_shared<const proto::TraceResponse>(std::move(spans)),
      .clock_offset_ns =
          std::min(clock.offset_ns, remote.at_start.offset_ns) + drift_ns / 2,
      .clock_error_ns = (drift_ns + 1) / 2 +
                        std::max(clock.error_ns, remote.at_start.error_ns)};
}

void TraceCollector::Collect() {
  if (!traces_.empty()) return;
  StopTrace();
  proto::TraceRequest request;
  request.set_action(proto::TraceRequest::STOP);
  traces_.push_back({.task = task_,
                     .spans = std::make_shared<const proto::TraceResponse>(
                         HandleTraceRequest(request))});
  for (const Remote& remote : remotes_) {
    absl::StatusOr<TaskTrace> trace = CollectFrom(remote);
    if (trace.ok()) {
      traces_.push_back(*std::move(trace));
    } else {
      LOG(WARNING) << "the trace is without " << remote.task << ": "
                   << trace.status().message();
    }
  }
}

std::string TraceCollector::Json() {
  Collect();
  return ChromeTraceJson(traces_);
}

}  // namespace muster
