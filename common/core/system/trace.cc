#include "common/core/system/trace.h"

#include <time.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster {
namespace {

constexpr size_t kNameCountMax = 4096;

// The newest spans of one thread. Only ReadTrace() contends for the mutex.
struct ThreadRing {
  absl::Mutex mutex;
  std::vector<TraceEvent> events ABSL_GUARDED_BY(mutex);
  int64_t recorded_count ABSL_GUARDED_BY(mutex) = 0;
  int thread = 0;
};

struct Recorder {
  absl::Mutex mutex;
  // The rings of threads that have ended remain until the next StartTrace().
  std::vector<std::shared_ptr<ThreadRing>> rings ABSL_GUARDED_BY(mutex);
  std::set<std::string> names ABSL_GUARDED_BY(mutex);
  std::atomic<int64_t> generation{0};
  std::atomic<int64_t> unrecorded_count{0};
};

// Never destroyed: threads may record while the process ends.
Recorder& GlobalRecorder() {
  static Recorder* const recorder = new Recorder;
  return *recorder;
}

// The ring of this thread for the current trace; null if there are too many.
ThreadRing* OwnRing() {
  thread_local std::shared_ptr<ThreadRing> ring;
  thread_local int64_t generation = 0;
  Recorder& recorder = GlobalRecorder();
  const int64_t current = recorder.generation.load(std::memory_order_acquire);
  if (generation == current) return ring.get();
  generation = current;
  ring = nullptr;
  absl::MutexLock lock(&recorder.mutex);
  if (recorder.rings.size() >= kTraceThreadsMax) return nullptr;
  ring = std::make_shared<ThreadRing>();
  ring->thread = static_cast<int>(recorder.rings.size());
  {
    absl::MutexLock ring_lock(&ring->mutex);
    ring->events.resize(kTraceEventsPerThread);
  }
  recorder.rings.push_back(ring);
  return ring.get();
}

}  // namespace

namespace internal {

std::atomic<bool> is_tracing{false};

void RecordTraceEvent(const TraceEvent& event) {
  ThreadRing* const ring = OwnRing();
  if (ring == nullptr) {
    GlobalRecorder().unrecorded_count.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  absl::MutexLock lock(&ring->mutex);
  TraceEvent& slot =
      ring->events[ring->recorded_count++ % kTraceEventsPerThread];
  slot = event;
  slot.thread = ring->thread;
}

}  // namespace internal

int64_t TraceClockNanos() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void StartTrace() {
  if (IsTracing()) return;
  Recorder& recorder = GlobalRecorder();
  {
    absl::MutexLock lock(&recorder.mutex);
    recorder.rings.clear();
    recorder.unrecorded_count.store(0);
    recorder.generation.fetch_add(1, std::memory_order_release);
  }
  internal::is_tracing.store(true);
}

void StopTrace() { internal::is_tracing.store(false); }

TraceRecording ReadTrace(int64_t count_max) {
  Recorder& recorder = GlobalRecorder();
  std::vector<std::shared_ptr<ThreadRing>> rings;
  {
    absl::MutexLock lock(&recorder.mutex);
    rings = recorder.rings;
  }
  TraceRecording recording;
  recording.dropped_count = recorder.unrecorded_count.load();
  for (const auto& ring : rings) {
    absl::MutexLock lock(&ring->mutex);
    const int64_t kept =
        std::min<int64_t>(ring->recorded_count, kTraceEventsPerThread);
    recording.dropped_count += ring->recorded_count - kept;
    recording.events.insert(recording.events.end(), ring->events.begin(),
                            ring->events.begin() + kept);
  }
  std::sort(recording.events.begin(), recording.events.end(),
            [](const TraceEvent& a, const TraceEvent& b) {
              // An outer span precedes the spans within it.
              return a.start_ns != b.start_ns ? a.start_ns < b.start_ns
                                              : a.duration_ns > b.duration_ns;
            });
  const int64_t surplus =
      static_cast<int64_t>(recording.events.size()) - count_max;
  if (surplus > 0) {
    recording.events.erase(recording.events.begin(),
                           recording.events.begin() + surplus);
    recording.dropped_count += surplus;
  }
  return recording;
}

const char* InternTraceName(absl::string_view name) {
  Recorder& recorder = GlobalRecorder();
  absl::MutexLock lock(&recorder.mutex);
  const auto found = recorder.names.find(std::string(name));
  if (found != recorder.names.end()) return found->c_str();
  if (recorder.names.size() >= kNameCountMax) return "other";
  return recorder.names.emplace(name).first->c_str();
}

}  // namespace muster
