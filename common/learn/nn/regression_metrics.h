#ifndef COMMON_LEARN_NN_REGRESSION_METRICS_H_
#define COMMON_LEARN_NN_REGRESSION_METRICS_H_

#include <cstdint>

#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/metric.h"

// Metrics of numbers that are no means of losses. Labels y and predictions x
// have one shape. Source: https://keras.io/api/metrics/regression_metrics/
namespace muster {

// sqrt(mean((y - x)^2)). Masks do not count, as in Keras.
Metric RootMeanSquaredError();

// The mean of log(cosh(x - y)): the loss LogCosh() under the name that Keras'
// metric has, "logcosh".
Metric LogCoshError();

struct CosineSimilarityMetricOptions {
  // The axis of the vectors, as CosineSimilarityOptions.axis. Keras leaves it
  // out of the metric's config.
  int64_t axis = -1;

  void VisitConfig(ConfigVisitor& visitor);
};
// The mean of cos(y, x): 1 for vectors of the same direction. The loss
// CosineSimilarity() has the opposite sign.
Metric CosineSimilarityMetric(
    const CosineSimilarityMetricOptions& options = {});

struct CorrelationOptions {
  // The axis of the numbers that are compared. Labels of shape [batch] are
  // compared over the batch, with predictions of shape [batch, 1] too.
  int64_t axis = -1;

  void VisitConfig(ConfigVisitor& visitor);
};
// The mean of the correlation of y and x along the axis: 1 if x rises linearly
// with y. NaN where all numbers of one of them are equal.
Metric PearsonCorrelation(const CorrelationOptions& options = {});
// The mean of Lin's concordance correlation, with the formula of Keras:
//
//   mean(2 (y - mean(x)) (x - mean(x))) /
//       (var(y) + var(x) + (mean(y) - mean(x))^2 + 1e-7)
//
// 1 if y and x are equal.
Metric ConcordanceCorrelation(const CorrelationOptions& options = {});

// How the scores of columns become one number.
enum class R2Aggregation {
  kUniformAverage,
  kVarianceWeightedAverage,
  kNone,  // The value is a list of one score for each column.
};
struct R2ScoreOptions {
  R2Aggregation class_aggregation = R2Aggregation::kUniformAverage;
  // Not 0: the score is adjusted for so many independent regressors, if the
  // labels are more by 2 at least.
  int64_t num_regressors = 0;

  void VisitConfig(ConfigVisitor& visitor);
};
// The coefficient of determination, 1 - sum((y - x)^2) / sum((y - mean(y))^2)
// for each column of labels and predictions [batch, columns]; a column whose
// score is infinite scores 0. Masks do not count, as in Keras.
//
// Reported to the builder: kInvalidArgument for other shapes.
Metric R2Score(const R2ScoreOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_REGRESSION_METRICS_H_
