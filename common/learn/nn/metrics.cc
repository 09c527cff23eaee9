#include "common/learn/nn/metrics.h"

#include <cstdint>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/confusion_metrics.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/sample_weights.h"

namespace muster {
namespace {

using internal::AlignLabels;
using internal::AlignSparseLabels;

// Which predictions are right: bool or 0 and 1, one for each label.
using Matches = std::function<Value(Value y_true, Value y_pred)>;

Metric MeanOfMatches(absl::string_view name, Matches matches) {
  return Metric(
      name,
      [matches](Value y_true, Value y_pred, Value sample_weight) {
        return MeanStatistics(matches(y_true, y_pred), sample_weight);
      },
      MeanResult);
}

Value IsInTopK(Value class_numbers, Value y_pred, int64_t k) {
  if (!class_numbers.ok() || !y_pred.ok()) return Value();
  if (y_pred.shape().rank() == 2) return InTopK(y_pred, class_numbers, k);
  const Value rows = Reshape(y_pred, {-1, y_pred.shape().dims().back()});
  const Value is_in = InTopK(rows, Reshape(class_numbers, {-1}), k);
  return ReshapeLike(is_in, class_numbers);
}

}  // namespace

void BinaryAccuracyOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("threshold", threshold);
}

void TopKOptions::VisitConfig(ConfigVisitor& visitor) { visitor.Visit("k", k); }

void AucOptions::VisitConfig(ConfigVisitor& visitor) {
  // In the order of the enums.
  static constexpr absl::string_view kCurves[] = {"ROC", "PR", "PRGAIN"};
  static constexpr absl::string_view kSummations[] = {"interpolation",
                                                      "minoring", "majoring"};
  visitor.Visit("num_thresholds", num_thresholds);
  if (thresholds.empty() && num_thresholds > kThresholdCountMax) {
    visitor.Refuse("num_thresholds",
                   absl::StrCat("must be at most ", kThresholdCountMax,
                                ", got ", num_thresholds));
  }
  visitor.Visit("curve", curve, kCurves);
  visitor.Visit("summation_method", summation_method, kSummations);
  visitor.Visit(Described("thresholds", "In place of num_thresholds."),
                thresholds);
  for (const double threshold : thresholds) {
    if (threshold >= 0 && threshold <= 1) continue;
    visitor.Refuse("thresholds",
                   absl::StrCat("must be in [0, 1], got ", threshold));
  }
  visitor.Visit("multi_label", multi_label);
  visitor.Visit("num_labels", num_labels);
  if (num_labels.has_value() && !multi_label) {
    visitor.Refuse("num_labels", "is for multi_label");
  }
  visitor.Visit("label_weights", label_weights);
  visitor.Visit("from_logits", from_logits);
}

void CrossentropyMetricOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("from_logits", from_logits);
  visitor.Visit("label_smoothing", label_smoothing);
}

void CategoricalCrossentropyMetricOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("from_logits", from_logits);
  visitor.Visit("label_smoothing", label_smoothing);
  visitor.Visit(Described("axis", "The axis of the classes."), axis);
}

void SparseCrossentropyMetricOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("from_logits", from_logits);
  visitor.Visit(Described("ignore_class", "Labels that do not count."),
                ignore_class);
  visitor.Visit(Described("axis", "The axis of the classes."), axis);
}

Metric BinaryCrossentropyMetric(const CrossentropyMetricOptions& options) {
  return BinaryCrossentropy({.from_logits = options.from_logits,
                             .label_smoothing = options.label_smoothing})
      .WithOptions(options);
}

Metric CategoricalCrossentropyMetric(
    const CategoricalCrossentropyMetricOptions& options) {
  return CategoricalCrossentropy({.from_logits = options.from_logits,
                                  .label_smoothing = options.label_smoothing,
                                  .axis = options.axis})
      .WithOptions(options);
}

Metric SparseCategoricalCrossentropyMetric(
    const SparseCrossentropyMetricOptions& options) {
  return SparseCategoricalCrossentropy({.from_logits = options.from_logits,
                                        .ignore_class = options.ignore_class,
                                        .axis = options.axis})
      .WithOptions(options);
}

Metric MeanOfPredictions(absl::string_view name) {
  return Metric(
             name,
             [](Value, Value y_pred, Value sample_weight) {
               return MeanStatistics(y_pred, sample_weight);
             },
             MeanResult)
      .WithOptions(NoOptions());
}

Metric SumOfPredictions(absl::string_view name) {
  return Metric(
             name,
             [](Value, Value y_pred, Value sample_weight) {
               return MeanStatistics(y_pred, sample_weight);
             },
             [](absl::Span<const double> statistics) { return statistics[0]; })
      .WithOptions(NoOptions());
}

Metric BinaryAccuracy(const BinaryAccuracyOptions& options) {
  const double threshold = options.threshold;
  return MeanOfMatches("binary_accuracy",
                       [threshold](Value y_true, Value y_pred) {
                         y_true = AlignLabels(y_true, y_pred);
                         return Equal(y_true,
                                      Cast(y_pred > threshold, y_true.dtype()));
                       })
      .WithOptions(options);
}

Metric CategoricalAccuracy() {
  return MeanOfMatches("categorical_accuracy",
                       [](Value y_true, Value y_pred) {
                         return Equal(ArgMax(y_true, -1), ArgMax(y_pred, -1));
                       })
      .WithOptions(NoOptions());
}

Metric SparseCategoricalAccuracy() {
  return MeanOfMatches("sparse_categorical_accuracy",
                       [](Value y_true, Value y_pred) {
                         const Value labels = AlignSparseLabels(y_true, y_pred);
                         return Equal(Cast(labels, DType::kInt64),
                                      ArgMax(y_pred, -1));
                       })
      .WithOptions(NoOptions());
}

Metric Accuracy() {
  return Metric(
             "accuracy",
             [](Value y_true, Value y_pred, Value sample_weight) {
               const Metric metric = internal::IsBinary(y_pred)
                                         ? BinaryAccuracy()
                                     : internal::IsSparse(y_true, y_pred)
                                         ? SparseCategoricalAccuracy()
                                         : CategoricalAccuracy();
               return metric.StatisticsOf(y_true, y_pred, sample_weight);
             },
             MeanResult)
      .WithOptions(NoOptions());
}

Metric TopKCategoricalAccuracy(const TopKOptions& options) {
  return MeanOfMatches("top_k_categorical_accuracy",
                       [k = options.k](Value y_true, Value y_pred) {
                         return IsInTopK(ArgMax(y_true, -1), y_pred, k);
                       })
      .WithOptions(options);
}

Metric SparseTopKCategoricalAccuracy(const TopKOptions& options) {
  return MeanOfMatches("sparse_top_k_categorical_accuracy",
                       [k = options.k](Value y_true, Value y_pred) {
                         return IsInTopK(AlignSparseLabels(y_true, y_pred),
                                         y_pred, k);
                       })
      .WithOptions(options);
}

}  // namespace muster
