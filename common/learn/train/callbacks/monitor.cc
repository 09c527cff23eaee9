#include "common/learn/train/callbacks/monitor.h"

#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster {
namespace {

// Parts of Keras' metric names.
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
          "\", and its name does not imply whether larger is better; set "
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
  bool is_right = fields.size() == counts.size() + 1;
  std::vector<int> numbers(counts.size());
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
