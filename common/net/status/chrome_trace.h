#ifndef COMMON_NET_STATUS_CHROME_TRACE_H_
#define COMMON_NET_STATUS_CHROME_TRACE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster {

namespace proto {
class TraceResponse;
}  // namespace proto

// The spans of one task, and how its clock compares with that of the trace.
struct TaskTrace {
  std::string task;                                   // "worker 1"
  std::shared_ptr<const proto::TraceResponse> spans;  // Not null.
  // The task's clock minus the clock of the trace, and how far this estimate
  // may be off.
  int64_t clock_offset_ns = 0;
  int64_t clock_error_ns = 0;
};

// Checks that the lists of `spans` are consistent.
//   kDataLoss  the lists differ in length, or an index of a name is out of
//              range
absl::Status CheckSpans(const proto::TraceResponse& spans);

// Returns a trace in Chrome's JSON format, which chrome://tracing and Perfetto
// open: a process for each task, a row for each of its threads, times in
// microseconds since the earliest span. Spans that overlap others of their
// thread are async events. `otherData` has, by task, `clock_offset_us`,
// `clock_error_us` and `dropped_spans`. The spans must pass CheckSpans().
//
// Format:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
std::string ChromeTraceJson(const std::vector<TaskTrace>& tasks);

}  // namespace muster

#endif  // COMMON_NET_STATUS_CHROME_TRACE_H_
