#ifndef COMMON_CORE_SYSTEM_METRICS_H_
#define COMMON_CORE_SYSTEM_METRICS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// The metrics of this process: counters, gauges and histograms that any code
// can update, and that an exporter reads. Independent of the exporter.
//
//   constexpr MetricInfo kSteps = {"muster_steps_total", "Finished steps."};
//   Counter* const steps = GetCounter(kSteps);  // Once.
//   steps->Add();                               // One relaxed atomic addition.
//
// Names have the prefix "muster_" and end with their unit (seconds, bytes);
// those of counters end with "_total". All functions are thread-safe.
namespace muster {

struct MetricInfo {
  absl::string_view name;  // Lives as long as the process.
  absl::string_view help;  // One sentence.
};

// Name and value. Values must come from a small set: each combination is a
// separate time series.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// A count that only grows.
class alignas(64) Counter {
 public:
  void Add(int64_t count = 1) {
    value_.fetch_add(count, std::memory_order_relaxed);
  }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

// The latest value of a quantity.
class alignas(64) Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// A distribution of durations. An observation is two relaxed atomic additions.
class alignas(64) DurationMetric {
 public:
  // The upper bounds of the buckets: 1, 2 and 5 times each power of ten from 1
  // microsecond to 100 seconds. One more bucket has all longer durations.
  static constexpr size_t kBoundCount = 25;
  static const std::array<int64_t, kBoundCount>& BoundsNanoseconds();

  void Observe(absl::Duration duration);

  // Observations by bucket, and the sum of all of them. Reads that run during
  // observations may see a part of them.
  std::array<int64_t, kBoundCount + 1> counts() const;
  absl::Duration sum() const {
    return absl::Nanoseconds(sum_nanoseconds_.load(std::memory_order_relaxed));
  }
  // The duration that `percent` of the observations do not exceed, as PromQL's
  // histogram_quantile() estimates it: observations are spread evenly within
  // their bucket, and those beyond the greatest bound count as that bound. Zero
  // without observations.
  absl::Duration Percentile(double percent) const;

 private:
  std::array<std::atomic<int64_t>, kBoundCount + 1> counts_{};
  std::atomic<int64_t> sum_nanoseconds_{0};
};

// Return the cell of this name and these labels, which lives as long as the
// process. Takes a lock: call once and keep the result. A name has one kind of
// metric.
Counter* GetCounter(const MetricInfo& info, const MetricLabels& labels = {});
Gauge* GetGauge(const MetricInfo& info, const MetricLabels& labels = {});
DurationMetric* GetDurationMetric(const MetricInfo& info,
                                  const MetricLabels& labels = {});

enum class CellKind { kCounter, kGauge, kDuration };

// All series of one name at one moment.
struct MetricFamily {
  struct Sample {
    MetricLabels labels;
    double value = 0;  // For counters and gauges.
    // For durations: by bucket, not cumulative.
    std::array<int64_t, DurationMetric::kBoundCount + 1> counts{};
    absl::Duration sum;
  };

  std::string name;
  std::string help;
  CellKind kind = CellKind::kGauge;
  std::vector<Sample> samples;
};

// Returns all metrics, sorted by name. Calls all MetricSources.
std::vector<MetricFamily> ReadMetrics();

// Receives values that are computed when the metrics are read.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  virtual void AddCounter(const MetricInfo& info, double value,
                          MetricLabels labels = {}) = 0;
  virtual void AddGauge(const MetricInfo& info, double value,
                        MetricLabels labels = {}) = 0;
};

// Adds values that are known without counting, such as the length of a queue,
// for as long as this object lives. `read` is called by ReadMetrics() on any
// thread. It may take locks that are not held while a source is destroyed, and
// must not create or destroy sources. Values of the same name and labels are
// added up.
class MetricSource {
 public:
  explicit MetricSource(std::function<void(MetricSink*)> read);
  ~MetricSource();

  MetricSource(const MetricSource&) = delete;
  MetricSource& operator=(const MetricSource&) = delete;

 private:
  const std::function<void(MetricSink*)> read_;
};

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_METRICS_H_
