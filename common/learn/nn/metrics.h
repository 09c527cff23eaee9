#ifndef COMMON_LEARN_NN_METRICS_H_
#define COMMON_LEARN_NN_METRICS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/confusion_metrics.h"
#include "common/learn/nn/iou_metrics.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/regression_metrics.h"

// Keras' metrics, with Keras' names, defaults and numerics. Losses are metrics
// too: MeanSquaredError(), Hinge(), ... They leave padding out, unless they say
// that masks do not count. These, and Auc(), ignore masks in Keras too.
//
// Unless stated otherwise, a metric is a mean over all labels, weighted by the
// sample weights.
// Sources: https://keras.io/api/metrics/accuracy_metrics/
//          https://keras.io/api/metrics/probabilistic_metrics/
//          https://keras.io/api/metrics/classification_metrics/ for Auc()
namespace muster {

// The weighted mean of the predictions; labels do not matter. Equivalent to:
// keras.metrics.Mean.
Metric MeanOfPredictions(absl::string_view name = "mean");

// The weighted sum of the predictions; labels do not matter. Equivalent to:
// keras.metrics.Sum.
Metric SumOfPredictions(absl::string_view name = "sum");

struct BinaryAccuracyOptions {
  double threshold = 0.5;

  void VisitConfig(ConfigVisitor& visitor);
};
// How often (prediction > threshold) is the label, 0 or 1. Labels and
// predictions of one shape.
// Equivalent to: keras.metrics.BinaryAccuracy.
Metric BinaryAccuracy(const BinaryAccuracyOptions& options = {});

// How often the greatest prediction is that of the label, for predictions
// [..., classes]: one-hot labels [..., classes], or class numbers [...] or
// [..., 1].
// Equivalent to: keras.metrics.CategoricalAccuracy and
// keras.metrics.SparseCategoricalAccuracy.
Metric CategoricalAccuracy();
Metric SparseCategoricalAccuracy();

// The metric that Keras calls "accuracy": BinaryAccuracy() if predictions are
// [..., 1], SparseCategoricalAccuracy() if labels are class numbers (of a lower
// rank than the predictions, or [..., 1]), and CategoricalAccuracy() otherwise.
Metric Accuracy();

struct TopKOptions {
  int64_t k = 5;

  void VisitConfig(ConfigVisitor& visitor);
};
// How often the label is among the k greatest predictions, ties included.
// Shapes as CategoricalAccuracy() and SparseCategoricalAccuracy().
// Equivalent to: keras.metrics.TopKCategoricalAccuracy and
// keras.metrics.SparseTopKCategoricalAccuracy.
Metric TopKCategoricalAccuracy(const TopKOptions& options = {});
Metric SparseTopKCategoricalAccuracy(const TopKOptions& options = {});

enum class AucCurve {
  kRoc,  // True positives over false positives.
  kPr,   // Precision over recall.
  // Precision gain over recall gain. Source: Flach and Kull, "Precision-Recall-
  // Gain Curves: PR Analysis Done Right", 2015.
  kPrGain,
};
enum class AucSummation {
  kInterpolation,
  kMinoring,  // The lower of two neighbours.
  kMajoring,
};
struct AucOptions {
  int64_t num_thresholds = 200;
  AucCurve curve = AucCurve::kRoc;
  AucSummation summation_method = AucSummation::kInterpolation;
  // Thresholds in [0, 1] in place of num_thresholds; one below 0 and one above
  // 1 are added.
  std::vector<double> thresholds = {};
  // The mean of the areas of the labels of predictions [batch, labels];
  // otherwise the area of all predictions together.
  bool multi_label = false;
  std::optional<int64_t> num_labels = std::nullopt;  // With multi_label only.
  // By position on the last axis: the weight of a label's area in the mean, or
  // without multi_label that of its predictions.
  std::vector<double> label_weights = {};
  // Predictions are logits, and not probabilities.
  bool from_logits = false;

  void VisitConfig(ConfigVisitor& visitor);
};
// The area under a curve, as a sum over thresholds that are spread evenly from
// 0 to 1, or those of the options: of (x[i] - x[i + 1]) * h(y[i], y[i + 1]),
// where h is their mean, or the lower or the greater one. With kInterpolation
// the area under kPr is interpolated as in the source. Labels and predictions
// of one shape, each label 0 or 1. Source: Davis and Goadrich, "The
// Relationship Between Precision-Recall and ROC Curves", 2006, for kPr.
// Equivalent to: keras.metrics.AUC.
//
// Reported to the builder: kInvalidArgument for an invalid option, or for
// predictions that are not [batch, labels] where that is expected.
Metric Auc(const AucOptions& options = {});

// The options of crossentropies as metrics, which reduce nothing.
struct CrossentropyMetricOptions {
  bool from_logits = false;
  double label_smoothing = 0;

  void VisitConfig(ConfigVisitor& visitor);
};
struct CategoricalCrossentropyMetricOptions {
  bool from_logits = false;
  double label_smoothing = 0;
  int64_t axis = -1;  // As CrossentropyOptions.

  void VisitConfig(ConfigVisitor& visitor);
};
struct SparseCrossentropyMetricOptions {
  bool from_logits = false;
  // Labels that do not count. Keras divides by the number of all labels where
  // there are no sample weights; here the mean is over the others either way.
  std::optional<int64_t> ignore_class = std::nullopt;
  int64_t axis = -1;  // As CrossentropyOptions.

  void VisitConfig(ConfigVisitor& visitor);
};
// The means of the losses BinaryCrossentropy(), CategoricalCrossentropy() and
// SparseCategoricalCrossentropy(), with their formulas and shapes (losses.h).
// Equivalent to: keras.metrics.BinaryCrossentropy, CategoricalCrossentropy and
// SparseCategoricalCrossentropy.
Metric BinaryCrossentropyMetric(const CrossentropyMetricOptions& options = {});
Metric CategoricalCrossentropyMetric(
    const CategoricalCrossentropyMetricOptions& options = {});
Metric SparseCategoricalCrossentropyMetric(
    const SparseCrossentropyMetricOptions& options = {});

// A kind of metric. The table has all that a file can name.
struct MetricKind {
  // The case of JobMetric.kind.
  absl::string_view name;
  absl::string_view keras_class;  // keras.metrics.<keras_class>
  Metric (*make)(ConfigVisitor& visitor);
};

inline constexpr MetricKind kMetricKinds[] = {
    // Keras' class of this name compares labels and predictions as they are.
    {"accuracy", "accuracy",
     [](ConfigVisitor& visitor) {
       visitor.Describe(
           "The binary, sparse or categorical accuracy, by the shapes of "
           "labels and predictions.");
       return Accuracy();
     }},
    {"binary_accuracy", "BinaryAccuracy",
     MakeConfigured<Metric, BinaryAccuracyOptions, BinaryAccuracy>},
    {"categorical_accuracy", "CategoricalAccuracy",
     [](ConfigVisitor&) { return CategoricalAccuracy(); }},
    {"sparse_categorical_accuracy", "SparseCategoricalAccuracy",
     [](ConfigVisitor&) { return SparseCategoricalAccuracy(); }},
    {"top_k_categorical_accuracy", "TopKCategoricalAccuracy",
     MakeConfigured<Metric, TopKOptions, TopKCategoricalAccuracy>},
    {"sparse_top_k_categorical_accuracy", "SparseTopKCategoricalAccuracy",
     MakeConfigured<Metric, TopKOptions, SparseTopKCategoricalAccuracy>},
    {"auc", "AUC", MakeConfigured<Metric, AucOptions, Auc>},
    {"mean_squared_error", "MeanSquaredError",
     [](ConfigVisitor&) { return Metric(MeanSquaredError()); }},
    {"mean_absolute_error", "MeanAbsoluteError",
     [](ConfigVisitor&) { return Metric(MeanAbsoluteError()); }},
    {"mean_absolute_percentage_error", "MeanAbsolutePercentageError",
     [](ConfigVisitor&) { return Metric(MeanAbsolutePercentageError()); }},
    {"mean_squared_logarithmic_error", "MeanSquaredLogarithmicError",
     [](ConfigVisitor&) { return Metric(MeanSquaredLogarithmicError()); }},
    {"poisson", "Poisson", [](ConfigVisitor&) { return Metric(Poisson()); }},
    {"kl_divergence", "KLDivergence",
     [](ConfigVisitor&) { return Metric(KLDivergence()); }},
    {"hinge", "Hinge", [](ConfigVisitor&) { return Metric(Hinge()); }},
    {"squared_hinge", "SquaredHinge",
     [](ConfigVisitor&) { return Metric(SquaredHinge()); }},
    {"categorical_hinge", "CategoricalHinge",
     [](ConfigVisitor&) { return Metric(CategoricalHinge()); }},
    {"logcosh", "LogCoshError", [](ConfigVisitor&) { return LogCoshError(); }},
    {"root_mean_squared_error", "RootMeanSquaredError",
     [](ConfigVisitor&) { return RootMeanSquaredError(); }},
    {"cosine_similarity", "CosineSimilarity",
     MakeConfigured<Metric, CosineSimilarityMetricOptions,
                    CosineSimilarityMetric>},
    {"pearson_correlation", "PearsonCorrelation",
     MakeConfigured<Metric, CorrelationOptions, PearsonCorrelation>},
    {"concordance_correlation", "ConcordanceCorrelation",
     MakeConfigured<Metric, CorrelationOptions, ConcordanceCorrelation>},
    {"r2_score", "R2Score", MakeConfigured<Metric, R2ScoreOptions, R2Score>},
    {"binary_crossentropy", "BinaryCrossentropy",
     MakeConfigured<Metric, CrossentropyMetricOptions,
                    BinaryCrossentropyMetric>},
    {"categorical_crossentropy", "CategoricalCrossentropy",
     MakeConfigured<Metric, CategoricalCrossentropyMetricOptions,
                    CategoricalCrossentropyMetric>},
    {"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy",
     MakeConfigured<Metric, SparseCrossentropyMetricOptions,
                    SparseCategoricalCrossentropyMetric>},
    {"true_positives", "TruePositives",
     MakeConfigured<Metric, ConfusionCountOptions, TruePositives>},
    {"true_negatives", "TrueNegatives",
     MakeConfigured<Metric, ConfusionCountOptions, TrueNegatives>},
    {"false_positives", "FalsePositives",
     MakeConfigured<Metric, ConfusionCountOptions, FalsePositives>},
    {"false_negatives", "FalseNegatives",
     MakeConfigured<Metric, ConfusionCountOptions, FalseNegatives>},
    {"precision", "Precision",
     MakeConfigured<Metric, PrecisionOptions, Precision>},
    {"recall", "Recall", MakeConfigured<Metric, PrecisionOptions, Recall>},
    {"sensitivity_at_specificity", "SensitivityAtSpecificity",
     MakeConfigured<Metric, SensitivityAtSpecificityOptions,
                    SensitivityAtSpecificity>},
    {"specificity_at_sensitivity", "SpecificityAtSensitivity",
     MakeConfigured<Metric, SpecificityAtSensitivityOptions,
                    SpecificityAtSensitivity>},
    {"precision_at_recall", "PrecisionAtRecall",
     MakeConfigured<Metric, PrecisionAtRecallOptions, PrecisionAtRecall>},
    {"recall_at_precision", "RecallAtPrecision",
     MakeConfigured<Metric, RecallAtPrecisionOptions, RecallAtPrecision>},
    {"f1_score", "F1Score", MakeConfigured<Metric, F1ScoreOptions, F1Score>},
    {"fbeta_score", "FBetaScore",
     MakeConfigured<Metric, FBetaScoreOptions, FBetaScore>},
    {"io_u", "IoU", MakeConfigured<Metric, IoUOptions, IoU>},
    {"mean_io_u", "MeanIoU", MakeConfigured<Metric, MeanIoUOptions, MeanIoU>},
    {"binary_io_u", "BinaryIoU",
     MakeConfigured<Metric, BinaryIoUOptions, BinaryIoU>},
    {"one_hot_io_u", "OneHotIoU",
     MakeConfigured<Metric, OneHotIoUOptions, OneHotIoU>},
    {"one_hot_mean_io_u", "OneHotMeanIoU",
     MakeConfigured<Metric, OneHotMeanIoUOptions, OneHotMeanIoU>},
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_METRICS_H_
