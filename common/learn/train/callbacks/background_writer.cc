#include "common/learn/train/callbacks/background_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/system/metrics.h"
#include "common/core/system/wait_line.h"

namespace muster {
namespace {

constexpr absl::Duration kFirstReport = absl::Seconds(2);

constexpr MetricInfo kWriteSeconds = {
    "muster_checkpoint_seconds", "Time to write and publish a checkpoint."};
constexpr MetricInfo kFailures = {"muster_checkpoint_failures_total",
                                  "Checkpoints that could not be written."};
constexpr MetricInfo kNewest = {
    "muster_checkpoint_last_timestamp_seconds",
    "When the newest checkpoint was published, in seconds since the Unix "
    "epoch; 0 before the first."};

// " (10 times so far)"; nothing for the first time.
std::string Times(const RepeatCount& events) {
  return events.count() == 1
             ? ""
             : absl::StrCat(" (", events.count(), " times so far)");
}

}  // namespace

BackgroundWriter::BackgroundWriter(Options options)
    : options_(options),
      source_([this](StatusReport* report) { AddStatus(report); }) {
  // These exist before the first write.
  GetDurationMetric(kWriteSeconds);
  GetCounter(kFailures);
  GetGauge(kNewest);
}

BackgroundWriter::~BackgroundWriter() {
  if (thread_.joinable()) thread_.join();
  absl::MutexLock lock(&mutex_);
  if (skipped_.count() > 1) {
    LOG(WARNING) << skipped_.count()
                 << " saves were skipped in all, each because the one before "
                    "was still being written";
  }
}

bool BackgroundWriter::Start(std::string what,
                             std::function<absl::Status()> write) {
  {
    absl::MutexLock lock(&mutex_);
    if (is_busy_) {
      if (skipped_.Add()) {
        LOG(WARNING) << what << " is skipped" << Times(skipped_) << ": "
                     << what_ << " is still being written";
      }
      return false;
    }
    is_busy_ = true;
    what_ = std::move(what);
    start_ = options_.clock->Now();
  }
  if (thread_.joinable()) thread_.join();
  thread_ = std::thread([this, write = std::move(write)] { Finish(write()); });
  return true;
}

absl::Status BackgroundWriter::Run(std::string what,
                                   std::function<absl::Status()> write) {
  const absl::Status before = Await();
  {
    absl::MutexLock lock(&mutex_);
    if (is_busy_) return before;
  }
  Start(std::move(what), std::move(write));
  return Await();
}

void BackgroundWriter::Finish(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (!status.ok()) NoteFailure(status);
  if (status.ok()) {
    if (failures_.count() > 0) {
      LOG(INFO) << what_ << " is written, after " << failures_.count()
                << " that failed";
    }
    failures_.Reset();
    const absl::Duration duration = options_.clock->Now() - start_;
    const absl::Time now = absl::Now();
    GetDurationMetric(kWriteSeconds)->Observe(duration);
    GetGauge(kNewest)->Set(absl::ToDoubleSeconds(now - absl::UnixEpoch()));
    const int64_t count = newest_.has_value() ? newest_->count : 0;
    newest_ = {
        .name = what_, .time = now, .duration = duration, .count = count + 1};
  }
  status_ = status;
  is_busy_ = false;
}

void BackgroundWriter::NoteFailure(const absl::Status& status) {
  ++failure_count_;
  GetCounter(kFailures)->Add();
  if (status.code() != status_.code()) failures_.Reset();
  if (!failures_.Add()) return;
  LOG(WARNING) << what_ << " could not be written" << Times(failures_)
               << ", and training continues; what was saved before is kept: "
               << status.message();
}

void BackgroundWriter::AddStatus(StatusReport* report) const {
  absl::MutexLock lock(&mutex_);
  report->checkpoint_failure_count += failure_count_;
  const bool is_newest =
      newest_.has_value() && (!report->checkpoint.has_value() ||
                              report->checkpoint->time < newest_->time);
  if (is_newest) report->checkpoint = newest_;
}

absl::Status BackgroundWriter::Await() {
  const absl::Time start = options_.clock->Now();
  const absl::Time end = start + options_.timeout;
  ReportPace pace(start, kFirstReport);
  WaitLine line;
  absl::MutexLock lock(&mutex_);
  while (is_busy_) {
    const bool is_idle = options_.clock->AwaitWithDeadline(
        &mutex_, absl::Condition(this, &BackgroundWriter::IsIdle),
        std::min(pace.next(), end));
    if (is_idle) break;
    const absl::Time now = options_.clock->Now();
    if (now >= end) {
      return absl::DeadlineExceededError(
          absl::StrCat(what_, " is still being written after ",
                       absl::FormatDuration(options_.timeout)));
    }
    if (!pace.IsDue(now)) continue;
    LOG(WARNING) << line << "waiting for the disk: " << what_
                 << " is still being written after "
                 << absl::FormatDuration(now - start);
  }
  return status_;
}

bool BackgroundWriter::is_busy() const {
  absl::MutexLock lock(&mutex_);
  return is_busy_;
}

int64_t BackgroundWriter::failure_count() const {
  absl::MutexLock lock(&mutex_);
  return failure_count_;
}

}  // namespace muster
