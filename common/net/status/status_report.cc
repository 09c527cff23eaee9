#include "common/net/status/status_report.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster {
namespace {

constexpr double kClosureTimeRatio = 2;
constexpr double kWaitedShare = 0.3;
// With fewer workers there is no median to compare with.
constexpr size_t kComparedWorkersMin = 2;

struct Sources {
  // Held while the sources are called, so that none is destroyed meanwhile.
  absl::Mutex mutex;
  std::vector<const std::function<void(StatusReport*)>*> all
      ABSL_GUARDED_BY(mutex);
};

// Never destroyed: pages may be read while the process ends.
Sources& OfProcess() {
  static Sources* const sources = new Sources;
  return *sources;
}

// Returns the median time of the workers' closures. Returns the smaller of two
// middle values, so that of two workers the slower one can exceed it.
absl::Duration MedianClosureTime(const std::vector<TaskStatus>& tasks) {
  std::vector<absl::Duration> times;
  for (const TaskStatus& task : tasks) {
    if (task.state != TaskStatus::State::kConnected) continue;
    const absl::Duration time =
        task.closure_time.value_or(absl::ZeroDuration());
    if (time > absl::ZeroDuration()) times.push_back(time);
  }
  if (times.size() < kComparedWorkersMin) return absl::InfiniteDuration();
  const auto middle = times.begin() + (times.size() - 1) / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

StatusSource::StatusSource(std::function<void(StatusReport*)> add)
    : add_(std::move(add)) {
  Sources& sources = OfProcess();
  absl::MutexLock lock(&sources.mutex);
  sources.all.push_back(&add_);
}

StatusSource::~StatusSource() {
  Sources& sources = OfProcess();
  absl::MutexLock lock(&sources.mutex);
  std::erase(sources.all, &add_);
}

StatusReport ReadStatus() {
  StatusReport report;
  {
    Sources& sources = OfProcess();
    absl::MutexLock lock(&sources.mutex);
    for (const auto* const add : sources.all) (*add)(&report);
  }
  MarkStragglers(&report.tasks);
  return report;
}

absl::Status Readiness(const StatusReport& report) {
  if (report.readiness.empty()) {
    return absl::UnavailableError("the process is starting");
  }
  for (const absl::Status& status : report.readiness) {
    if (!status.ok()) return absl::UnavailableError(status.message());
  }
  return absl::OkStatus();
}

void MarkStragglers(std::vector<TaskStatus>* tasks) {
  const absl::Duration usual = MedianClosureTime(*tasks);
  for (TaskStatus& task : *tasks) {
    if (task.state != TaskStatus::State::kConnected) continue;
    const absl::Duration time =
        task.closure_time.value_or(absl::ZeroDuration());
    if (time > absl::ZeroDuration() && usual != absl::InfiniteDuration()) {
      task.closure_time_ratio = absl::FDivDuration(time, usual);
    }
    task.is_straggler =
        task.closure_time_ratio.value_or(0) > kClosureTimeRatio ||
        task.waited_share.value_or(0) > kWaitedShare;
  }
}

}  // namespace muster
