#ifndef COMMON_NET_STATUS_METRICS_TEXT_H_
#define COMMON_NET_STATUS_METRICS_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/core/system/metrics.h"

namespace muster {

// The Content-Type of MetricsText().
inline constexpr absl::string_view kMetricsContentType =
    "text/plain; version=0.0.4; charset=utf-8";

// Returns `families` in Prometheus' text format 0.0.4. `labels` are added to
// every series. https://prometheus.io/docs/instrumenting/exposition_formats/
std::string MetricsText(const std::vector<MetricFamily>& families,
                        const MetricLabels& labels);

}  // namespace muster

#endif  // COMMON_NET_STATUS_METRICS_TEXT_H_
