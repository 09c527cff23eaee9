#include "common/learn/train/training_monitor.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"

namespace muster {
namespace {

constexpr absl::Duration kSampleInterval = absl::Milliseconds(500);
constexpr absl::Duration kRateWindow = absl::Seconds(10);

constexpr MetricInfo kSteps = {"muster_steps_total",
                               "Training steps of the job that have ended."};
constexpr MetricInfo kExamples = {
    "muster_examples_total",
    "Examples of these steps, those of all replicas together."};
constexpr MetricInfo kStepSeconds = {
    "muster_step_seconds",
    "Time from the end of one training step to the end of the next."};
constexpr MetricInfo kEpoch = {"muster_epoch",
                               "The number of the current epoch, from 1."};
constexpr MetricInfo kValue = {
    "muster_training_value",
    "The loss and each metric, as the mean of the epoch so far; values of "
    "validation begin with val_."};

}  // namespace

TrainingMonitor::TrainingMonitor(int epoch_count, Clock* clock)
    : clock_(clock),
      steps_(GetCounter(kSteps)),
      examples_(GetCounter(kExamples)),
      step_seconds_(GetDurationMetric(kStepSeconds)),
      epoch_gauge_(GetGauge(kEpoch)),
      point_interval_(kSampleInterval),
      source_([this](StatusReport* report) { AddStatus(report); }) {
  absl::MutexLock lock(&mutex_);
  status_.epoch_count = epoch_count;
}

void TrainingMonitor::BeginEpoch(int epoch,
                                 std::optional<int64_t> steps_expected) {
  epoch_gauge_->Set(epoch + 1);
  epoch_.store(epoch + 1, std::memory_order_relaxed);
  steps_per_epoch_.store(steps_expected.value_or(-1),
                         std::memory_order_relaxed);
  step_in_epoch_.store(0, std::memory_order_relaxed);
  epoch_example_count_ = 0;
  absl::MutexLock lock(&mutex_);
  if (start_.has_value()) return;
  start_ = clock_->Now();
  first_epoch_ = epoch;
}

void TrainingMonitor::OnSteps(const Steps& steps, const MetricSums& sums) {
  const int64_t example_count = sums.example_count() - epoch_example_count_;
  epoch_example_count_ += example_count;
  steps_->Add(steps.count);
  examples_->Add(example_count);
  for (int64_t i = 0; i < steps.count; ++i) {
    step_seconds_->Observe(steps.duration);
  }
  step_count_.fetch_add(steps.count, std::memory_order_relaxed);
  example_count_.fetch_add(example_count, std::memory_order_relaxed);
  step_in_epoch_.store(steps.step_in_epoch, std::memory_order_relaxed);
  if (steps.end < next_sample_) return;
  next_sample_ = steps.end + kSampleInterval;
  Sample(steps.end, sums.Values(), /*is_epoch_end=*/false);
}

void TrainingMonitor::EndEpoch(const Logs& logs) {
  const absl::Time now = clock_->Now();
  Sample(now, logs, /*is_epoch_end=*/true);
  absl::MutexLock lock(&mutex_);
  ++ended_epoch_count_;
  epoch_end_ = now;
}

void TrainingMonitor::Sample(absl::Time now, const Logs& values,
                             bool is_epoch_end) {
  for (const auto& [name, value] : values) {
    GetGauge(kValue, {{"name", name}})->Set(value);
  }
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, value] : values) status_.values[name] = value;
  marks_.push_back(
      {.time = now,
       .step_count = step_count_.load(std::memory_order_relaxed),
       .example_count = example_count_.load(std::memory_order_relaxed)});
  while (marks_.size() > 2 && now - marks_[1].time >= kRateWindow) {
    marks_.pop_front();
  }
  AddPoint(now, values, is_epoch_end);
}

void TrainingMonitor::AddPoint(absl::Time now, const Logs& values,
                               bool is_epoch_end) {
  TrainingStatus::Point point = {
      .time = absl::Now(),
      .step = step_count_.load(std::memory_order_relaxed),
      .values = {},
      .is_epoch_end = is_epoch_end};
  // Values of validation arrive at the end of an epoch, shortly after other
  // values, so the interval is checked for each name.
  for (const auto& [name, value] : values) {
    const auto [it, is_first] = newest_points_.try_emplace(name);
    Newest& newest = it->second;
    if (!is_first && now - newest.time < point_interval_) {
      if (newest.is_epoch_end || !is_epoch_end) continue;
      RemoveNewest(name);
    }
    newest = {.time = now, .is_epoch_end = is_epoch_end};
    point.values.emplace(name, value);
  }
  if (point.values.empty()) return;
  status_.series.push_back(std::move(point));
  if (status_.series.size() >= kPointsMax) HalvePoints();
}

void TrainingMonitor::RemoveNewest(const std::string& name) {
  for (auto point = status_.series.rbegin(); point != status_.series.rend();
       ++point) {
    if (point->values.erase(name) == 0) continue;
    if (point->values.empty()) status_.series.erase(std::next(point).base());
    return;
  }
}

void TrainingMonitor::HalvePoints() {
  std::map<std::string, TrainingStatus::Point*> first_of_pair;  // By name.
  std::vector<std::pair<TrainingStatus::Point*, std::string>> dropped;
  for (TrainingStatus::Point& point : status_.series) {
    for (const auto& [name, value] : point.values) {
      const auto [first, is_first] = first_of_pair.try_emplace(name, &point);
      if (is_first) continue;
      const bool is_better = point.is_epoch_end && !first->second->is_epoch_end;
      dropped.emplace_back(is_better ? first->second : &point, name);
      first_of_pair.erase(first);
    }
  }
  for (const auto& [point, name] : dropped) point->values.erase(name);
  std::erase_if(status_.series, [](const TrainingStatus::Point& point) {
    return point.values.empty();
  });
  point_interval_ *= 2;
}

std::optional<absl::Duration> TrainingMonitor::TimeLeft(absl::Time now) const {
  if (!start_.has_value()) return std::nullopt;
  const int epochs_left =
      status_.epoch_count - first_epoch_ - ended_epoch_count_;
  if (epochs_left <= 0) return absl::ZeroDuration();
  if (ended_epoch_count_ > 0) {
    const absl::Duration epoch = (epoch_end_ - *start_) / ended_epoch_count_;
    return std::max(epochs_left * epoch - (now - epoch_end_),
                    (epochs_left - 1) * epoch);
  }
  const int64_t steps_per_epoch =
      steps_per_epoch_.load(std::memory_order_relaxed);
  const int64_t step_count = step_count_.load(std::memory_order_relaxed);
  if (steps_per_epoch < 0 || step_count == 0) return std::nullopt;
  const double steps_left =
      static_cast<double>(steps_per_epoch) * epochs_left -
      static_cast<double>(step_in_epoch_.load(std::memory_order_relaxed));
  return (now - *start_) / static_cast<double>(step_count) *
         std::max(steps_left, 0.0);
}

void TrainingMonitor::AddStatus(StatusReport* report) const {
  report->readiness.push_back(absl::OkStatus());
  absl::MutexLock lock(&mutex_);
  TrainingStatus status = status_;
  status.epoch = epoch_.load(std::memory_order_relaxed);
  status.step_count = step_count_.load(std::memory_order_relaxed);
  status.example_count = example_count_.load(std::memory_order_relaxed);
  status.step_in_epoch = step_in_epoch_.load(std::memory_order_relaxed);
  const int64_t steps = steps_per_epoch_.load(std::memory_order_relaxed);
  if (steps >= 0) status.steps_per_epoch = steps;
  status.time_left = TimeLeft(clock_->Now());
  // The rate covers the time up to now, so that it falls if training stalls.
  const double seconds =
      marks_.empty()
          ? 0
          : absl::ToDoubleSeconds(clock_->Now() - marks_.front().time);
  if (seconds > 0) {
    status.steps_per_second =
        static_cast<double>(status.step_count - marks_.front().step_count) /
        seconds;
    status.examples_per_second =
        static_cast<double>(status.example_count -
                            marks_.front().example_count) /
        seconds;
  }
  report->training = std::move(status);
}

}  // namespace muster
