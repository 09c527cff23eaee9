#include "common/learn/nn/regression_metrics.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss_options.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/regression_losses.h"
#include "common/learn/nn/sample_weights.h"

namespace muster {
namespace {

bool HasColumns(Value y_true, Value y_pred) {
  if (!y_true.ok() || !y_pred.ok()) return false;
  if (y_true.shape().rank() == 2 && y_pred.shape().rank() == 2 &&
      y_pred.shape().dims()[1] != Shape::kUnknown) {
    return true;
  }
  y_pred.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
      "r2_score: expected labels and predictions [batch, columns] with a known "
      "number of columns, got ",
      y_true.type().ToString(), " and ", y_pred.type().ToString())));
  return false;
}

// {labels, their squares, squared errors, weights} of each column, then the
// number of labels.
Value R2Statistics(Value y_true, Value y_pred, Value sample_weight) {
  if (!HasColumns(y_true, y_pred)) return Value();
  y_pred = Cast(y_pred, DType::kFloat32);
  y_true = Cast(y_true, DType::kFloat32);
  Value weights = OnesLike(y_true);
  if (internal::HasWeights(sample_weight)) {
    weights =
        BroadcastLike(internal::AlignWeights(sample_weight, y_true), y_true);
  }
  const auto sum = [&](Value x) { return Sum(x * weights, {0}); };
  return Concat(
      {sum(y_true), sum(Square(y_true)), sum(SquaredDifference(y_true, y_pred)),
       Sum(weights, {0}), Reshape(CountAlong(y_true, {0, 1}), {1})},
      0);
}

// The scores of columns, and how much the labels of each vary.
struct ColumnScores {
  std::vector<double> scores;
  std::vector<double> variances;
};

ColumnScores ScoreColumns(absl::Span<const double> statistics) {
  const size_t columns = (statistics.size() - 1) / 4;
  ColumnScores scored;
  for (size_t i = 0; i < columns; ++i) {
    const double sum = statistics[i];
    const double count = statistics[3 * columns + i];
    const double variance = statistics[columns + i] - sum * sum / count;
    const double score = 1 - statistics[2 * columns + i] / variance;
    scored.scores.push_back(std::isinf(score) ? 0 : score);
    scored.variances.push_back(variance);
  }
  return scored;
}

double Adjusted(double score, double label_count,
                const R2ScoreOptions& options) {
  const double regressors = static_cast<double>(options.num_regressors);
  if (regressors == 0 || regressors >= label_count - 1) return score;
  return 1 - (1 - score) * (label_count - 1) / (label_count - regressors - 1);
}

double R2Result(absl::Span<const double> statistics,
                const R2ScoreOptions& options) {
  const double label_count = statistics.back();
  if (label_count == 0) return 0;
  const ColumnScores scored = ScoreColumns(statistics);
  double score_sum = 0;
  double weighted_sum = 0;
  double variance_sum = 0;
  for (size_t i = 0; i < scored.scores.size(); ++i) {
    score_sum += scored.scores[i];
    weighted_sum += scored.scores[i] * scored.variances[i];
    variance_sum += scored.variances[i];
  }
  const double score =
      options.class_aggregation == R2Aggregation::kUniformAverage
          ? score_sum / static_cast<double>(scored.scores.size())
          : weighted_sum / variance_sum;
  return Adjusted(score, label_count, options);
}

std::vector<double> R2Results(absl::Span<const double> statistics,
                              const R2ScoreOptions& options) {
  const double label_count = statistics.back();
  std::vector<double> scores = ScoreColumns(statistics).scores;
  for (double& score : scores) {
    score = label_count == 0 ? 0 : Adjusted(score, label_count, options);
  }
  return scores;
}

// Numbers along an axis: deviations from their mean, and their variance.
struct Moments {
  Value mean;
  Value deviations;
  Value variance;
};

Moments MomentsOf(Value x, int64_t axis) {
  const ReduceOptions keep = {.keep_dims = true};
  Moments moments{.mean = Mean(x, {axis}, keep)};
  moments.deviations = x - moments.mean;
  moments.variance = Mean(Square(moments.deviations), {axis}, keep);
  return moments;
}

// Labels and predictions in one dtype and one shape.
struct Compared {
  Value y_true;
  Value y_pred;
};

Compared Align(Value y_true, Value y_pred) {
  y_pred = internal::AtLeastFloat32(y_pred);
  // As in Keras, labels without an axis of one take it from the predictions.
  const Shape& shape = y_pred.shape();
  const bool is_column = y_true.ok() && y_pred.ok() &&
                         y_true.shape().rank() == 1 && shape.rank() == 2 &&
                         shape.dims().back() == 1;
  if (is_column) y_pred = Squeeze(y_pred, {-1});
  return {internal::AlignLabels(y_true, y_pred), y_pred};
}

Value PearsonOf(Value y_true, Value y_pred, int64_t axis) {
  const Compared compared = Align(y_true, y_pred);
  const Moments y = MomentsOf(compared.y_true, axis);
  const Moments x = MomentsOf(compared.y_pred, axis);
  return Mean(
      y.deviations / Sqrt(y.variance) * (x.deviations / Sqrt(x.variance)),
      {axis});
}

Value ConcordanceOf(Value y_true, Value y_pred, int64_t axis) {
  const Compared compared = Align(y_true, y_pred);
  const Moments y = MomentsOf(compared.y_true, axis);
  const Moments x = MomentsOf(compared.y_pred, axis);
  const Value products = (compared.y_true - x.mean) * x.deviations;
  const Value norm = y.variance + x.variance + Square(y.mean - x.mean);
  return Mean(products * 2.0 / (norm + internal::kEpsilon), {axis});
}

using Correlation = Value (*)(Value y_true, Value y_pred, int64_t axis);

Metric MeanOf(absl::string_view name, Correlation correlation,
              const CorrelationOptions& options) {
  return Metric(
             name,
             [correlation, axis = options.axis](Value y_true, Value y_pred,
                                                Value sample_weight) {
               return MeanStatistics(correlation(y_true, y_pred, axis),
                                     sample_weight);
             },
             MeanResult)
      .WithOptions(options);
}

}  // namespace

void CorrelationOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("axis", axis);
}

void CosineSimilarityMetricOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("axis", axis);
}

void R2ScoreOptions::VisitConfig(ConfigVisitor& visitor) {
  // In the order of R2Aggregation.
  static constexpr absl::string_view kNames[] = {
      "uniform_average", "variance_weighted_average", "none"};
  visitor.Visit(
      Described("class_aggregation",
                "NONE: logs have a list of one score for each column."),
      class_aggregation, kNames);
  visitor.Visit("num_regressors", num_regressors);
  if (num_regressors < 0) {
    visitor.Refuse("num_regressors",
                   absl::StrCat("must be at least 0, got ", num_regressors));
  }
}

Metric RootMeanSquaredError() {
  return Metric(
             "root_mean_squared_error",
             [](Value y_true, Value y_pred, Value sample_weight) {
               return MeanStatistics(
                   SquaredDifference(y_pred,
                                     internal::AlignLabels(y_true, y_pred)),
                   sample_weight);
             },
             [](absl::Span<const double> statistics) {
               return std::sqrt(MeanResult(statistics));
             })
      .IgnoringMasks()
      .WithOptions(NoOptions());
}

Metric LogCoshError() {
  return Metric(LogCosh()).Named("logcosh").WithOptions(NoOptions());
}

Metric CosineSimilarityMetric(const CosineSimilarityMetricOptions& options) {
  const Metric opposite = CosineSimilarity({.axis = options.axis});
  return Metric(
             opposite.name(),
             [opposite](Value y_true, Value y_pred, Value sample_weight) {
               return opposite.StatisticsOf(y_true, y_pred, sample_weight);
             },
             [](absl::Span<const double> statistics) {
               return -MeanResult(statistics);
             })
      .WithOptions(options);
}

Metric PearsonCorrelation(const CorrelationOptions& options) {
  return MeanOf("pearson_correlation", PearsonOf, options);
}

Metric ConcordanceCorrelation(const CorrelationOptions& options) {
  return MeanOf("concordance_correlation", ConcordanceOf, options);
}

Metric R2Score(const R2ScoreOptions& options) {
  const Metric metric =
      options.class_aggregation == R2Aggregation::kNone
          ? Metric("r2_score", R2Statistics,
                   Metric::Results([options](absl::Span<const double> sums) {
                     return R2Results(sums, options);
                   }))
          : Metric("r2_score", R2Statistics,
                   Metric::Result([options](absl::Span<const double> sums) {
                     return R2Result(sums, options);
                   }));
  return metric.IgnoringMasks().WithOptions(options);
}

}  // namespace muster
