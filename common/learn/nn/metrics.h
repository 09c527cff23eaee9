#ifndef COMMON_LEARN_NN_METRICS_H_
#define COMMON_LEARN_NN_METRICS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
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
};
// How often (prediction > threshold) is the label, 0 or 1.
Metric BinaryAccuracy(const BinaryAccuracyOptions& options = {});

// How often the greatest prediction is that of the label: one-hot labels, or
// class numbers.
Metric CategoricalAccuracy();
Metric SparseCategoricalAccuracy();

struct TopKOptions {
  int64_t k = 5;
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
};
// The area under a curve, as a sum over thresholds that are spread evenly from
// 0 to 1.
Metric Auc(const AucOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_METRICS_H_
