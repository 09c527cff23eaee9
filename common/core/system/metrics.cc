#include "common/core/system/metrics.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/check.h"

namespace muster {
namespace {

template <typename Cell>
using Cells = std::map<MetricLabels, std::unique_ptr<Cell>>;

struct Family {
  std::string help;
  CellKind kind = CellKind::kGauge;
  Cells<Counter> counters;
  Cells<Gauge> gauges;
  Cells<DurationMetric> durations;
};

struct Registry {
  absl::Mutex mutex;
  std::map<std::string, Family> families ABSL_GUARDED_BY(mutex);
  // Held while sources are read, so that no source is destroyed meanwhile.
  absl::Mutex sources_mutex ABSL_ACQUIRED_BEFORE(mutex);
  std::vector<const std::function<void(MetricSink*)>*> sources
      ABSL_GUARDED_BY(sources_mutex);
};

// Never destroyed: threads may count while the process ends.
Registry& OfProcess() {
  static Registry* const registry = new Registry;
  return *registry;
}

template <typename Cell>
Cell* GetCell(const MetricInfo& info, const MetricLabels& labels, CellKind kind,
              Cells<Cell> Family::*cells) {
  Registry& registry = OfProcess();
  absl::MutexLock lock(&registry.mutex);
  const auto [it, is_new] =
      registry.families.try_emplace(std::string(info.name));
  Family& family = it->second;
  if (is_new) {
    family.help = std::string(info.help);
    family.kind = kind;
  }
  MUSTER_CHECK(family.kind == kind);
  std::unique_ptr<Cell>& cell = (family.*cells)[labels];
  if (cell == nullptr) cell = std::make_unique<Cell>();
  return cell.get();
}

class Collector final : public MetricSink {
 public:
  explicit Collector(std::map<std::string, MetricFamily>* families)
      : families_(families) {}

  void AddCounter(const MetricInfo& info, double value,
                  MetricLabels labels) override {
    Add(info, CellKind::kCounter, value, std::move(labels));
  }
  void AddGauge(const MetricInfo& info, double value,
                MetricLabels labels) override {
    Add(info, CellKind::kGauge, value, std::move(labels));
  }

 private:
  void Add(const MetricInfo& info, CellKind kind, double value,
           MetricLabels labels) {
    MetricFamily& family = (*families_)[std::string(info.name)];
    if (family.name.empty()) {
      family.name = std::string(info.name);
      family.help = std::string(info.help);
      family.kind = kind;
    }
    const auto [it, is_new] = positions_.try_emplace(
        std::make_pair(info.name, labels), family.samples.size());
    if (is_new) {
      family.samples.push_back({.labels = std::move(labels), .value = value});
    } else {
      family.samples[it->second].value += value;
    }
  }

  std::map<std::string, MetricFamily>* const families_;
  // Index of each sample in its family.
  std::map<std::pair<absl::string_view, MetricLabels>, size_t> positions_;
};

std::map<std::string, MetricFamily> ReadCells() {
  Registry& registry = OfProcess();
  std::map<std::string, MetricFamily> families;
  absl::MutexLock lock(&registry.mutex);
  for (const auto& [name, cells] : registry.families) {
    MetricFamily& family = families[name];
    family.name = name;
    family.help = cells.help;
    family.kind = cells.kind;
    for (const auto& [labels, cell] : cells.counters) {
      family.samples.push_back(
          {.labels = labels, .value = static_cast<double>(cell->value())});
    }
    for (const auto& [labels, cell] : cells.gauges) {
      family.samples.push_back({.labels = labels, .value = cell->value()});
    }
    for (const auto& [labels, cell] : cells.durations) {
      family.samples.push_back(
          {.labels = labels, .counts = cell->counts(), .sum = cell->sum()});
    }
  }
  return families;
}

}  // namespace

const std::array<int64_t, DurationMetric::kBoundCount>&
DurationMetric::BoundsNanoseconds() {
  static constexpr auto kBounds = [] {
    std::array<int64_t, kBoundCount> bounds{};
    int64_t power = 1000;
    for (size_t i = 0; i < kBoundCount; ++i) {
      constexpr int64_t kMantissas[] = {1, 2, 5};
      bounds[i] = kMantissas[i % 3] * power;
      if (i % 3 == 2) power *= 10;
    }
    return bounds;
  }();
  return kBounds;
}

void DurationMetric::Observe(absl::Duration duration) {
  const int64_t nanoseconds =
      std::max<int64_t>(absl::ToInt64Nanoseconds(duration), 0);
  const auto& bounds = BoundsNanoseconds();
  const size_t bucket =
      std::lower_bound(bounds.begin(), bounds.end(), nanoseconds) -
      bounds.begin();
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_nanoseconds_.fetch_add(nanoseconds, std::memory_order_relaxed);
}

absl::Duration DurationMetric::Percentile(double percent) const {
  const std::array<int64_t, kBoundCount + 1> all = counts();
  const int64_t total = std::accumulate(all.begin(), all.end(), int64_t{0});
  double rank = percent / 100 * static_cast<double>(total);
  double lower = 0;
  for (size_t i = 0; i < kBoundCount && total > 0; ++i) {
    const auto upper = static_cast<double>(BoundsNanoseconds()[i]);
    const auto count = static_cast<double>(all[i]);
    if (count > 0 && rank <= count) {
      return absl::Nanoseconds(lower + (upper - lower) * rank / count);
    }
    rank -= count;
    lower = upper;
  }
  return absl::Nanoseconds(total > 0 ? lower : 0);
}

std::array<int64_t, DurationMetric::kBoundCount + 1> DurationMetric::counts()
    const {
  std::array<int64_t, kBoundCount + 1> counts{};
  for (size_t i = 0; i < counts.size(); ++i) {
    counts[i] = counts_[i].load(std::memory_order_relaxed);
  }
  return counts;
}

Counter* GetCounter(const MetricInfo& info, const MetricLabels& labels) {
  return GetCell(info, labels, CellKind::kCounter, &Family::counters);
}

Gauge* GetGauge(const MetricInfo& info, const MetricLabels& labels) {
  return GetCell(info, labels, CellKind::kGauge, &Family::gauges);
}

DurationMetric* GetDurationMetric(const MetricInfo& info,
                                  const MetricLabels& labels) {
  return GetCell(info, labels, CellKind::kDuration, &Family::durations);
}

std::vector<MetricFamily> ReadMetrics() {
  std::map<std::string, MetricFamily> families = ReadCells();
  {
    Registry& registry = OfProcess();
    Collector collector(&families);
    absl::MutexLock lock(&registry.sources_mutex);
    for (const auto* const source : registry.sources) (*source)(&collector);
  }
  std::vector<MetricFamily> sorted;
  sorted.reserve(families.size());
  for (auto& [name, family] : families) sorted.push_back(std::move(family));
  return sorted;
}

MetricSource::MetricSource(std::function<void(MetricSink*)> read)
    : read_(std::move(read)) {
  Registry& registry = OfProcess();
  absl::MutexLock lock(&registry.sources_mutex);
  registry.sources.push_back(&read_);
}

MetricSource::~MetricSource() {
  Registry& registry = OfProcess();
  absl::MutexLock lock(&registry.sources_mutex);
  std::erase(registry.sources, &read_);
}

}  // namespace muster
