#ifndef COMMON_LEARN_NN_METRICS_H_
#define COMMON_LEARN_NN_METRICS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metric.h"

// Keras' metrics, with Keras' names, defaults and numerics. Losses are metrics
// too: MeanSquaredError(), MeanAbsoluteError(), ... All of them leave padding
// out, but Auc(), which in Keras does not heed masks either.
namespace muster {

// The weighted mean of the predictions; labels do not matter. Equivalent to:
// keras.metrics.Mean.
Metric MeanOfPredictions(absl::string_view name = "mean");

struct BinaryAccuracyOptions {
  double threshold = 0.5;

  void VisitConfig(ConfigVisitor& visitor);
};
// How often (prediction > threshold) is the label, 0 or 1.
Metric BinaryAccuracy(const BinaryAccuracyOptions& options = {});

// How often the greatest prediction is that of the label: one-hot labels, or
// class numbers.
Metric CategoricalAccuracy();
Metric SparseCategoricalAccuracy();

struct TopKOptions {
  int64_t k = 5;

  void VisitConfig(ConfigVisitor& visitor);
};
// How often the label is among the k greatest predictions, ties included.
Metric TopKCategoricalAccuracy(const TopKOptions& options = {});
Metric SparseTopKCategoricalAccuracy(const TopKOptions& options = {});

enum class AucCurve {
  kRoc,  // True positives over false positives.
  kPr,   // Precision over recall.
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
  // Predictions are logits, and not probabilities.
  bool from_logits = false;

  void VisitConfig(ConfigVisitor& visitor);
};
// The area under a curve, as a sum over thresholds that are spread evenly from
// 0 to 1.
Metric Auc(const AucOptions& options = {});

// A kind of metric. The table has all that a file can name.
struct MetricKind {
  // The case of JobMetric.kind (proto/training_job.proto).
  absl::string_view name;
  absl::string_view keras_class;  // keras.metrics.<keras_class>
  Metric (*make)(ConfigVisitor& visitor);
};

inline constexpr MetricKind kMetricKinds[] = {
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
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_METRICS_H_
