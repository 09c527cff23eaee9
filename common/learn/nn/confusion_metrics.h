#ifndef COMMON_LEARN_NN_CONFUSION_METRICS_H_
#define COMMON_LEARN_NN_CONFUSION_METRICS_H_

#include <cstdint>
#include <optional>

#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/threshold_list.h"

// Metrics of the confusion matrix: how many labels and predictions agree above
// and below thresholds. Labels and predictions have one shape; a label is
// positive if it is not 0, a prediction if it is greater than the threshold.
// Sample weights count; masks do not, as in Keras.
//
// With several `thresholds`, each in [0, 1], the value is a list of one number
// for each.
// Source: https://keras.io/api/metrics/classification_metrics/
namespace muster {

// The most thresholds of a metric, and the most that num_thresholds may ask
// for.
inline constexpr int64_t kThresholdCountMax = 1'000'000;

struct ConfusionCountOptions {
  ThresholdList thresholds = {};  // 0.5 when absent.

  void VisitConfig(ConfigVisitor& visitor);
};
// The weight of the labels that are ...
Metric TruePositives(const ConfusionCountOptions& options = {});
Metric TrueNegatives(const ConfusionCountOptions& options = {});
Metric FalsePositives(const ConfusionCountOptions& options = {});
Metric FalseNegatives(const ConfusionCountOptions& options = {});

struct PrecisionOptions {
  // When absent 0.5; with top_k none.
  ThresholdList thresholds = {};
  // Only the k greatest predictions of an example can be positive; of equal
  // ones the first. Adds 3 * top_k nodes to the graph.
  std::optional<int64_t> top_k = std::nullopt;
  // Only this class, a position on the last axis, is counted.
  std::optional<int64_t> class_id = std::nullopt;

  void VisitConfig(ConfigVisitor& visitor);
};
// tp / (tp + fp) and tp / (tp + fn); 0 where the divisor is.
Metric Precision(const PrecisionOptions& options = {});
Metric Recall(const PrecisionOptions& options = {});

struct SensitivityAtSpecificityOptions {
  std::optional<double> specificity = std::nullopt;  // Required, in [0, 1].
  int64_t num_thresholds = 200;
  std::optional<int64_t> class_id = std::nullopt;  // As PrecisionOptions.

  void VisitConfig(ConfigVisitor& visitor);
};
struct SpecificityAtSensitivityOptions {
  std::optional<double> sensitivity = std::nullopt;  // Required, in [0, 1].
  int64_t num_thresholds = 200;
  std::optional<int64_t> class_id = std::nullopt;  // As PrecisionOptions.

  void VisitConfig(ConfigVisitor& visitor);
};
struct PrecisionAtRecallOptions {
  std::optional<double> recall = std::nullopt;  // Required, in [0, 1].
  int64_t num_thresholds = 200;
  std::optional<int64_t> class_id = std::nullopt;  // As PrecisionOptions.

  void VisitConfig(ConfigVisitor& visitor);
};
struct RecallAtPrecisionOptions {
  std::optional<double> precision = std::nullopt;  // Required, in [0, 1].
  int64_t num_thresholds = 200;
  std::optional<int64_t> class_id = std::nullopt;  // As PrecisionOptions.

  void VisitConfig(ConfigVisitor& visitor);
};
// The greatest value of the first quantity over all thresholds at which the
// second is at least what the options say; 0 if there is no such threshold. The
// thresholds are spread evenly from 0 to 1; a single one is 0.5.
// Sensitivity is tp / (tp + fn), specificity is tn / (tn + fp).
//
// Reported to the builder: kInvalidArgument for an absent or invalid option.
Metric SensitivityAtSpecificity(const SensitivityAtSpecificityOptions& options);
Metric SpecificityAtSensitivity(const SpecificityAtSensitivityOptions& options);
Metric PrecisionAtRecall(const PrecisionAtRecallOptions& options);
Metric RecallAtPrecision(const RecallAtPrecisionOptions& options);

// How the scores of classes become one number.
enum class FScoreAverage {
  kMicro,     // The score of all classes' counts together.
  kMacro,     // The mean of the classes' scores.
  kWeighted,  // The same, weighted by how often a class is the label.
};
struct F1ScoreOptions {
  // Absent: the value is a list of one score for each class.
  std::optional<FScoreAverage> average = std::nullopt;
  // Absent: the greatest prediction of each example is positive.
  std::optional<double> threshold = std::nullopt;  // In (0, 1].

  void VisitConfig(ConfigVisitor& visitor);
};
struct FBetaScoreOptions {
  std::optional<FScoreAverage> average = std::nullopt;  // As F1ScoreOptions.
  double beta = 1;                                      // More than 0.
  std::optional<double> threshold = std::nullopt;       // As F1ScoreOptions.

  void VisitConfig(ConfigVisitor& visitor);
};
// (1 + beta^2) * precision * recall / (beta^2 * precision + recall) of labels
// and predictions [batch, classes], where 1e-7 is added to divisors.
//
// Reported to the builder: kInvalidArgument for predictions that are not
// [batch, classes] with a known number of classes.
Metric F1Score(const F1ScoreOptions& options = {});
Metric FBetaScore(const FBetaScoreOptions& options = {});

namespace internal {

// Returns a / b; 0 where b is.
inline double DivideNoNan(double a, double b) { return b == 0 ? 0 : a / b; }

}  // namespace internal
}  // namespace muster

#endif  // COMMON_LEARN_NN_CONFUSION_METRICS_H_
