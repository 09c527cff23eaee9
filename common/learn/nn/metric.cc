#include "common/learn/nn/metric.h"

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/sample_weights.h"

namespace muster {

using internal::AlignWeights;
using internal::HasWeights;
using internal::NoWeights;

Metric::Metric(absl::string_view name, Statistics statistics, Result result)
    : name_(name),
      statistics_(std::move(statistics)),
      result_(std::move(result)),
      kind_(name) {}

Metric::Metric(absl::string_view name, Statistics statistics, Results results)
    : name_(name),
      statistics_(std::move(statistics)),
      results_(std::move(results)),
      kind_(name) {}

Metric::Metric(const Loss& loss)
    : Metric(
          loss.name(),
          [loss](Value y_true, Value y_pred, Value sample_weight) {
            const auto [losses, has_label] = loss.OfExamples(y_true, y_pred);
            if (HasWeights(has_label)) {
              sample_weight = internal::MaskWeights(sample_weight, has_label);
            }
            return MeanStatistics(losses, sample_weight);
          },
          Result(MeanResult)) {
  visit_options_ = loss.visit_options();
}

Metric Metric::Named(absl::string_view name) const {
  Metric metric = *this;
  metric.name_ = std::string(name);
  return metric;
}

Metric Metric::IgnoringMasks() const {
  Metric metric = *this;
  metric.heeds_masks_ = false;
  return metric;
}

Value Metric::StatisticsOf(Value y_true, Value y_pred) const {
  return StatisticsOf(y_true, y_pred, NoWeights());
}

Value Metric::StatisticsOf(Value y_true, Value y_pred,
                           Value sample_weight) const {
  return StatisticsOf(y_true, y_pred, sample_weight, NoWeights());
}

Value Metric::StatisticsOf(Value y_true, Value y_pred, Value sample_weight,
                           Value mask) const {
  if (heeds_masks_ && HasWeights(mask)) {
    sample_weight = internal::MaskWeights(sample_weight, mask);
  }
  return statistics_(y_true, internal::AtLeastFloat32(y_pred), sample_weight);
}

double Metric::ResultOf(absl::Span<const double> statistics) const {
  if (!is_list()) return result_(statistics);
  const std::vector<double> results = results_(statistics);
  if (results.empty()) return 0;
  return std::accumulate(results.begin(), results.end(), 0.0) /
         static_cast<double>(results.size());
}

std::vector<double> Metric::ResultsOf(
    absl::Span<const double> statistics) const {
  return is_list() ? results_(statistics)
                   : std::vector<double>{result_(statistics)};
}

Value MeanStatistics(Value values, Value sample_weight) {
  if (!values.ok()) return values;
  if (values.dtype() != DType::kFloat32) {
    values = Cast(values, DType::kFloat32);
  }
  if (HasWeights(sample_weight)) {
    // Broadcast first: a weight counts once for each value it weighs.
    const Value weights =
        BroadcastLike(AlignWeights(sample_weight, values), values);
    return Stack({Sum(values * weights), Sum(weights)}, 0);
  }
  std::vector<int64_t> axes(values.shape().rank());
  std::iota(axes.begin(), axes.end(), 0);
  return Stack({Sum(values), CountAlong(values, axes)}, 0);
}

Value MeanStatistics(Value values) {
  return MeanStatistics(values, NoWeights());
}

double MeanResult(absl::Span<const double> statistics) {
  const double sum = statistics[0];
  const double count = statistics[1];
  return count == 0 ? 0 : sum / count;
}

}  // namespace muster
