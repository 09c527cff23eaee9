#ifndef COMMON_CORE_SYSTEM_TRACE_H_
#define COMMON_CORE_SYSTEM_TRACE_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

// Records what this process does, as spans of time, for a trace of the job
// (common/net/status/trace_collector.h).
//
//   TraceSpan span("kernel", trace_name);
//
// While tracing is off, a span costs one relaxed load and a branch. While it is
// on, it costs two readings of the clock and a write to a ring of this thread,
// which keeps the newest spans. All functions are thread-safe.
namespace muster {

struct TraceEvent {
  const char* category = nullptr;
  const char* name = nullptr;
  int64_t start_ns = 0;  // As TraceClockNanos().
  int64_t duration_ns = 0;
  // Number of the thread, in the order in which threads recorded their first
  // span.
  int thread = 0;
  // True for a span that may overlap other spans of its thread, such as a
  // request that waits for its reply while the thread continues. All other
  // spans of one thread nest.
  bool overlaps = false;
};

// Maximum number of spans that each thread keeps.
inline constexpr int kTraceEventsPerThread = 1 << 14;
// Maximum number of threads that are recorded. The spans of further threads are
// not kept.
inline constexpr int kTraceThreadsMax = 128;

// A steady clock of this process, in nanoseconds.
int64_t TraceClockNanos();

// Discards earlier spans and begins to record. No effect if tracing is on.
void StartTrace();
// Ends recording. The spans are kept for ReadTrace().
void StopTrace();

struct TraceRecording {
  std::vector<TraceEvent> events;  // Ordered by start.
  int64_t dropped_count = 0;       // Spans that were overwritten or not kept.
};
// Returns the spans that are kept, at most `count_max` of them: the newest.
TraceRecording ReadTrace(int64_t count_max);

// Returns `name` as a string that lives as long as the process. After a few
// thousand different names, returns "other".
const char* InternTraceName(absl::string_view name);

namespace internal {
extern std::atomic<bool> is_tracing;
void RecordTraceEvent(const TraceEvent& event);
}  // namespace internal

inline bool IsTracing() {
  return internal::is_tracing.load(std::memory_order_relaxed);
}

// Records a span that has ended. The strings live as long as the process.
// `overlaps`: see TraceEvent.
inline void RecordTraceSpan(const char* category, const char* name,
                            int64_t start_ns, bool overlaps = false) {
  if (!IsTracing()) return;
  internal::RecordTraceEvent({.category = category,
                              .name = name,
                              .start_ns = start_ns,
                              .duration_ns = TraceClockNanos() - start_ns,
                              .overlaps = overlaps});
}

// Records its own lifetime. The strings live as long as the process.
class TraceSpan {
 public:
  TraceSpan(const char* category, const char* name)
      : category_(category),
        name_(name),
        start_ns_(IsTracing() ? TraceClockNanos() : 0) {}
  ~TraceSpan() {
    if (start_ns_ != 0) RecordTraceSpan(category_, name_, start_ns_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  const char* const category_;
  const char* const name_;
  const int64_t start_ns_;
};

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_TRACE_H_
