#include "common/net/status/run_timeline.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/core/system/trace.h"

namespace muster {
namespace {

constexpr MetricInfo kGoodput = {
    "muster_goodput_ratio",
    "Share of the time of training that went into steps that count."};
constexpr MetricInfo kLostSeconds = {
    "muster_training_lost_seconds_total",
    "Time of training that losses of tasks have cost."};

std::string WithCost(const std::string& text, absl::Duration cost) {
  // Shorter times are not worth a reader's attention.
  cost = absl::Trunc(cost, absl::Milliseconds(1));
  if (cost <= absl::ZeroDuration()) return text;
  return absl::StrCat(text, " (cost ", absl::FormatDuration(cost),
                      " of training)");
}

void WriteToLog(LogSeverity severity, const std::string& line) {
  switch (severity) {
    case LogSeverity::kInfo:
      LOG(INFO) << line;
      return;
    case LogSeverity::kWarning:
      LOG(WARNING) << line;
      return;
    case LogSeverity::kError:
      LOG(ERROR) << line;
      return;
  }
}

}  // namespace

RunTimeline::RunTimeline(Clock* clock)
    : clock_(clock),
      status_source_(
          [this](StatusReport* report) { report->timeline = status(); }),
      metric_source_([this](MetricSink* sink) {
        const TimelineStatus now = Totals();
        sink->AddGauge(kGoodput, now.goodput);
        sink->AddCounter(kLostSeconds, absl::ToDoubleSeconds(now.lost));
      }) {}

void RunTimeline::Begin(int worker_count) {
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  if (std::exchange(has_begun_, true)) return;
  worker_count_ = std::max(1, worker_count);
  if (begun_at_ <= now) return;  // An earlier process had begun.
  begun_at_ = now;
  begun_on_calendar_ = absl::Now();
}

void RunTimeline::Continue(const TimelineStatus& earlier,
                           const std::string& text) {
  const absl::Time now = clock_->Now();
  absl::Duration elapsed;
  {
    absl::MutexLock lock(&mutex_);
    // Clocks of machines may differ.
    elapsed = std::max(earlier.elapsed, absl::Now() - earlier.begun_at);
    begun_at_ = now - elapsed;
    begun_on_calendar_ = earlier.begun_at;
    cost_ = earlier.lost;
    event_count_ = earlier.event_count;
    events_ = {earlier.events.begin(), earlier.events.end()};
  }
  Note(LogSeverity::kInfo, text, {.pause = elapsed - earlier.elapsed});
}

void RunTimeline::AddEarlier(std::vector<RunEvent> events) {
  absl::MutexLock lock(&mutex_);
  event_count_ += static_cast<int64_t>(events.size());
  events_.insert(events_.begin(), std::make_move_iterator(events.begin()),
                 std::make_move_iterator(events.end()));
  while (events_.size() > kEventsMax) events_.pop_front();
}

void RunTimeline::Note(LogSeverity severity, const std::string& text,
                       const Effect& effect) {
  const absl::Duration cost = Add(text, effect);
  WriteToLog(severity, WithCost(text, cost));
  if (IsTracing()) {
    RecordTraceSpan("run", InternTraceName(text),
                    TraceClockNanos() - absl::ToInt64Nanoseconds(cost),
                    /*overlaps=*/true);
  }
}

absl::Duration RunTimeline::Add(const std::string& text, const Effect& effect) {
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  absl::Duration cost = effect.pause;
  for (const std::string& task : effect.returned) {
    const auto found = absences_.find(task);
    if (found == absences_.end()) continue;
    cost += CostOfAbsence(found->second, now);
    absences_.erase(found);
  }
  for (const std::string& task : effect.lost) absences_.try_emplace(task, now);
  cost_ += cost;
  ++event_count_;
  events_.push_back({absl::Now(), text, cost});
  if (events_.size() > kEventsMax) events_.pop_front();
  return cost;
}

absl::Duration RunTimeline::CostOfAbsence(absl::Time since,
                                          absl::Time now) const {
  return std::max(absl::ZeroDuration(), now - std::max(since, begun_at_)) /
         worker_count_;
}

TimelineStatus RunTimeline::status() const {
  TimelineStatus status = Totals();
  absl::MutexLock lock(&mutex_);
  status.events = {events_.begin(), events_.end()};
  return status;
}

TimelineStatus RunTimeline::Totals() const {
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  TimelineStatus status = {.event_count = event_count_};
  if (begun_at_ >= now) return status;
  status.begun_at = begun_on_calendar_;
  status.elapsed = now - begun_at_;
  status.lost = cost_;
  for (const auto& [task, since] : absences_) {
    status.lost += CostOfAbsence(since, now);
  }
  status.lost = std::min(status.lost, status.elapsed);
  status.goodput = 1 - absl::FDivDuration(status.lost, status.elapsed);
  return status;
}

}  // namespace muster
