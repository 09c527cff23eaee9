#include "common/learn/train/base/log_lists.h"

#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// More than any metric has, so that a name from a file allocates little.
constexpr uint32_t kIndexMax = 1 << 20;

}  // namespace

std::string LogEntryName(absl::string_view metric, size_t index) {
  return absl::StrCat(metric, "[", index, "]");
}

std::optional<LogEntry> ParseLogEntryName(absl::string_view name) {
  const size_t begin = name.rfind('[');
  if (begin == absl::string_view::npos || begin == 0 ||
      !absl::EndsWith(name, "]")) {
    return std::nullopt;
  }
  const absl::string_view digits =
      name.substr(begin + 1, name.size() - begin - 2);
  uint32_t index = 0;
  if (!absl::SimpleAtoi(digits, &index) || index > kIndexMax ||
      digits != absl::StrCat(index)) {
    return std::nullopt;
  }
  return LogEntry{.metric = std::string(name.substr(0, begin)), .index = index};
}

double LoggedMetric::Mean() const {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(values.size());
}

std::vector<LoggedMetric> MetricsOf(const Logs& logs) {
  std::map<std::string, LoggedMetric> metrics;
  for (const auto& [name, value] : logs) {
    const std::optional<LogEntry> entry = ParseLogEntryName(name);
    if (!entry.has_value()) {
      metrics[name] = {.name = name, .values = {value}};
      continue;
    }
    LoggedMetric& metric = metrics[entry->metric];
    metric.name = entry->metric;
    metric.is_list = true;
    if (metric.values.size() <= entry->index) {
      metric.values.resize(entry->index + 1,
                           std::numeric_limits<double>::quiet_NaN());
    }
    metric.values[entry->index] = value;
  }
  std::vector<LoggedMetric> sorted;
  for (auto& [name, metric] : metrics) sorted.push_back(std::move(metric));
  return sorted;
}

std::vector<std::pair<std::string, double>> ShownValues(const Logs& logs) {
  std::vector<std::pair<std::string, double>> shown;
  for (const LoggedMetric& metric : MetricsOf(logs)) {
    shown.emplace_back(metric.name, metric.Mean());
  }
  return shown;
}

}  // namespace muster
