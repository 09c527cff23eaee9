#include "common/train/callbacks/monitor.h"

#include <array>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace muster {
namespace {

// Parts of the names that Keras gives its metrics.
constexpr std::array<absl::string_view, 12> kGrowing = {
    "acc",      "auc",           "precision",     "recall",
    "f1",       "fbeta",         "iou",           "r2",
    "fmeasure", "true_positive", "true_negative", "similarity"};
constexpr std::array<absl::string_view, 11> kShrinking = {
    "error",         "mse",     "mae",     "mape",       "msle",
    "crossentropy",  "logcosh", "poisson", "divergence", "false_positive",
    "false_negative"};

template <size_t n>
bool ContainsAny(absl::string_view name,
                 const std::array<absl::string_view, n>& parts) {
  for (const absl::string_view part : parts) {
    if (absl::StrContains(name, part)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<Monitor> Monitor::Create(absl::string_view owner,
                                        absl::string_view name,
                                        MonitorMode mode, double min_delta) {
  if (mode == MonitorMode::kAuto) {
    const absl::string_view metric = absl::StripPrefix(name, "val_");
    if (absl::EndsWith(metric, "loss") || ContainsAny(metric, kShrinking)) {
      mode = MonitorMode::kMin;
    } else if (ContainsAny(metric, kGrowing)) {
      mode = MonitorMode::kMax;
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          owner, ": monitor is \"", name,
          "\", and its name does not say whether it should grow or shrink; set "
          "mode to max or to min"));
    }
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

std::string NamesIn(const Logs& logs) {
  return absl::StrJoin(logs, ", ", [](std::string* out, const auto& entry) {
    out->append(entry.first);
  });
}

}  // namespace muster
