#include "common/learn/train/base/metric_direction.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metric.h"
#include "common/learn/train/base/log_lists.h"
#include "common/learn/train/base/step_results.h"

namespace muster {
namespace {

// Values of Metric::kind(), with the directions of Keras' classes.
constexpr absl::string_view kUp[] = {
    "accuracy",
    "auc",
    "binary_accuracy",
    "binary_io_u",
    "categorical_accuracy",
    "concordance_correlation",
    "cosine_similarity",
    "f1_score",
    "fbeta_score",
    "io_u",
    "mean_io_u",
    "one_hot_io_u",
    "one_hot_mean_io_u",
    "pearson_correlation",
    "precision",
    "precision_at_recall",
    "r2_score",
    "recall",
    "recall_at_precision",
    "sensitivity_at_specificity",
    "sparse_categorical_accuracy",
    "sparse_top_k_categorical_accuracy",
    "specificity_at_sensitivity",
    "top_k_categorical_accuracy",
};

// Metrics that are not in kLossKinds.
constexpr absl::string_view kDown[] = {
    "logcosh",
    "root_mean_squared_error",
};

constexpr char kLoss[] = "loss";

}  // namespace

std::optional<MetricDirection> DirectionOf(const Metric& metric) {
  const auto has = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), metric.kind()) !=
           std::end(names);
  };
  if (has(kUp)) return MetricDirection::kUp;
  const bool is_loss = std::any_of(
      std::begin(kLossKinds), std::end(kLossKinds),
      [&](const LossKind& loss) { return loss.name == metric.kind(); });
  if (is_loss || has(kDown)) return MetricDirection::kDown;
  return std::nullopt;
}

std::optional<MetricDirection> DirectionOf(const StepResults& results,
                                           absl::string_view name) {
  const std::optional<LogEntry> entry = ParseLogEntryName(name);
  const absl::string_view metric_name =
      entry.has_value() ? entry->metric : name;
  const auto metric = std::find_if(
      results.metrics.begin(), results.metrics.end(),
      [&](const Metric& each) { return each.name() == metric_name; });
  const bool is_loss =
      name == kLoss || std::find(results.losses.begin(), results.losses.end(),
                                 name) != results.losses.end();
  std::optional<MetricDirection> direction;
  if (metric != results.metrics.end()) direction = DirectionOf(*metric);
  if (!direction.has_value() && is_loss) direction = MetricDirection::kDown;
  return direction;
}

}  // namespace muster
