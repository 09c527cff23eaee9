#include "common/net/status/metrics_text.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/time/time.h"

namespace muster {
namespace {

prometheus::MetricType TypeOf(CellKind kind) {
  switch (kind) {
    case CellKind::kCounter:
      return prometheus::MetricType::Counter;
    case CellKind::kGauge:
      return prometheus::MetricType::Gauge;
    case CellKind::kDuration:
      break;
  }
  return prometheus::MetricType::Histogram;
}

prometheus::ClientMetric::Histogram HistogramOf(
    const MetricFamily::Sample& sample) {
  prometheus::ClientMetric::Histogram histogram;
  uint64_t cumulative_count = 0;
  for (size_t i = 0; i < sample.counts.size(); ++i) {
    cumulative_count += sample.counts[i];
    const double bound =
        i < DurationMetric::kBoundCount
            ? static_cast<double>(DurationMetric::BoundsNanoseconds()[i]) / 1e9
            : std::numeric_limits<double>::infinity();
    histogram.bucket.push_back(
        {.cumulative_count = cumulative_count, .upper_bound = bound});
  }
  histogram.sample_count = cumulative_count;
  histogram.sample_sum = absl::ToDoubleSeconds(sample.sum);
  return histogram;
}

}  // namespace

std::string MetricsText(const std::vector<MetricFamily>& families,
                        const MetricLabels& labels) {
  std::vector<prometheus::MetricFamily> converted;
  converted.reserve(families.size());
  for (const MetricFamily& family : families) {
    prometheus::MetricFamily& to = converted.emplace_back();
    to.name = family.name;
    to.help = family.help;
    to.type = TypeOf(family.kind);
    to.metric.reserve(family.samples.size());
    for (const MetricFamily::Sample& sample : family.samples) {
      prometheus::ClientMetric& metric = to.metric.emplace_back();
      for (const auto& [name, value] : labels) {
        metric.label.push_back({name, value});
      }
      for (const auto& [name, value] : sample.labels) {
        metric.label.push_back({name, value});
      }
      switch (family.kind) {
        case CellKind::kCounter:
          metric.counter.value = sample.value;
          break;
        case CellKind::kGauge:
          metric.gauge.value = sample.value;
          break;
        case CellKind::kDuration:
          metric.histogram = HistogramOf(sample);
          break;
      }
    }
  }
  return prometheus::TextSerializer().Serialize(converted);
}

}  // namespace muster
