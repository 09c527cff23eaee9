#include "common/learn/train/callbacks/monitor.h"

#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace muster {
absl::StatusOr<Monitor> Monitor::Create(
    absl::string_view owner, absl::string_view name, MonitorMode mode,
    std::optional<MetricDirection> direction, double min_delta) {
  if (mode == MonitorMode::kAuto) {
    if (!direction.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          owner, ": monitor is \"", name,
          "\", which is neither a loss nor a metric of which larger or smaller "
          "values are known to be better; set mode to max or to min"));
    }
    mode = *direction == MetricDirection::kUp ? MonitorMode::kMax
                                              : MonitorMode::kMin;
  }
  return Monitor(name, mode, std::abs(min_delta));
}

std::optional<double> Monitor::Find(const Logs& logs) const {
  const auto found = logs.find(name_);
  if (found == logs.end()) return std::nullopt;
  return found->second;
}

bool Monitor::IsImprovement(double value,
                            std::optional<double> reference) const {
  if (!reference.has_value()) return true;
  if (std::isnan(*reference)) return !std::isnan(value);
  return direction_ == MonitorMode::kMin ? value + min_delta_ < *reference
                                         : value - min_delta_ > *reference;
}

std::string SaveCounts(std::initializer_list<int> counts,
                       std::optional<double> best) {
  return absl::StrCat(
      absl::StrJoin(counts, ";"), ";",
      best.has_value() ? absl::StrFormat("%.17g", *best) : "none");
}

absl::Status RestoreCounts(absl::string_view owner, absl::string_view state,
                           std::initializer_list<int*> counts,
                           std::optional<double>* best) {
  const std::vector<absl::string_view> fields = absl::StrSplit(state, ';');
  bool is_right = fields.size() > 1 && fields.size() <= counts.size() + 1;
  std::vector<int> numbers(fields.size() - 1);
  for (size_t i = 0; is_right && i < numbers.size(); ++i) {
    is_right = absl::SimpleAtoi(fields[i], &numbers[i]);
  }
  double value = 0;
  const bool has_best = fields.back() != "none";
  is_right = is_right && (!has_best || absl::SimpleAtod(fields.back(), &value));
  if (!is_right) {
    return absl::InvalidArgumentError(absl::StrCat(
        owner, ": the checkpoint contains the invalid state \"", state, "\""));
  }
  for (size_t i = 0; i < numbers.size(); ++i) *counts.begin()[i] = numbers[i];
  best->reset();
  if (has_best) *best = value;
  return absl::OkStatus();
}

std::string NamesIn(const Logs& logs) {
  return absl::StrJoin(logs, ", ", [](std::string* out, const auto& entry) {
    out->append(entry.first);
  });
}

}  // namespace muster
