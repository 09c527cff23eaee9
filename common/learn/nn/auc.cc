#include "common/learn/nn/auc.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/sample_weights.h"

namespace muster {
namespace internal {
namespace {

double DivideNoNan(double a, double b) { return b == 0 ? 0 : a / b; }

// Interpolates between the points of the curve as Davis and Goadrich do ("The
// relationship between precision-recall and ROC curves", 2006): true positives
// grow linearly, precision does not.
double InterpolatedPrAuc(const ConfusionCounts& counts) {
  double area = 0;
  for (size_t i = 0; i + 1 < counts.true_positives.size(); ++i) {
    const double tp = counts.true_positives[i];
    const double next_tp = counts.true_positives[i + 1];
    const double p = tp + counts.false_positives[i];
    const double next_p = next_tp + counts.false_positives[i + 1];
    const double slope = DivideNoNan(tp - next_tp, std::max(p - next_p, 0.0));
    const double intercept = next_tp - slope * next_p;
    const double ratio = p > 0 && next_p > 0 ? p / next_p : 1;
    area += DivideNoNan(slope * (tp - next_tp + intercept * std::log(ratio)),
                        counts.positives);
  }
  return area;
}

}  // namespace

ConfusionCounts CountsFromBuckets(absl::Span<const double> buckets) {
  const size_t threshold_count = buckets.size() / 2;
  ConfusionCounts counts;
  counts.true_positives.resize(threshold_count);
  counts.false_positives.resize(threshold_count);
  for (size_t i = threshold_count; i-- > 0;) {
    counts.positives += buckets[i];
    counts.negatives += buckets[threshold_count + i];
    counts.true_positives[i] = counts.positives;
    counts.false_positives[i] = counts.negatives;
  }
  return counts;
}

double AreaUnderCurve(const ConfusionCounts& counts, AucCurve curve,
                      AucSummation summation) {
  if (curve == AucCurve::kPr && summation == AucSummation::kInterpolation) {
    return InterpolatedPrAuc(counts);
  }
  const auto point = [&](size_t i, double* x, double* y) {
    const double tp = counts.true_positives[i];
    const double fp = counts.false_positives[i];
    const double recall = DivideNoNan(tp, counts.positives);
    *x = curve == AucCurve::kRoc ? DivideNoNan(fp, counts.negatives) : recall;
    *y = curve == AucCurve::kRoc ? recall : DivideNoNan(tp, tp + fp);
  };
  double area = 0;
  for (size_t i = 0; i + 1 < counts.true_positives.size(); ++i) {
    double x, y, next_x, next_y;
    point(i, &x, &y);
    point(i + 1, &next_x, &next_y);
    double height = (y + next_y) / 2;
    if (summation == AucSummation::kMinoring) height = std::min(y, next_y);
    if (summation == AucSummation::kMajoring) height = std::max(y, next_y);
    area += (x - next_x) * height;
  }
  return area;
}

}  // namespace internal

namespace {

// float32[2, thresholds]: the weights of positive and negative labels in each
// bucket between two thresholds.
Value BucketsOf(Value y_true, Value y_pred, Value sample_weight,
                const AucOptions& options) {
  if (!y_pred.ok()) return y_pred;
  if (options.num_thresholds < 2) {
    y_pred.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat("Auc: num_thresholds is ", options.num_thresholds,
                     ", expected at least 2")));
    return Value();
  }
  if (y_pred.dtype() != DType::kFloat32) {
    y_pred = Cast(y_pred, DType::kFloat32);
  }
  y_true = internal::AlignLabels(y_true, y_pred);
  if (options.from_logits) y_pred = Sigmoid(y_pred);
  y_pred = Minimum(Maximum(y_pred, 0.0), 1.0);

  const double interval_count = static_cast<double>(options.num_thresholds - 1);
  const Value bucket =
      Cast(Relu(Ceil(y_pred * interval_count) - 1.0), DType::kInt32);
  const Value membership = OneHot(Reshape(bucket, {-1}),
                                  options.num_thresholds);  // [labels, buckets]

  Value positive = Cast(NotEqual(y_true, 0.0), DType::kFloat32);
  Value negative = 1.0 - positive;
  if (internal::HasWeights(sample_weight)) {
    const Value weights = internal::AlignWeights(sample_weight, positive);
    positive = positive * weights;
    negative = negative * weights;
  }
  const Value kinds =
      Stack({Reshape(positive, {-1}), Reshape(negative, {-1})}, 0);
  return MatMul(kinds, membership);
}

}  // namespace

Metric Auc(const AucOptions& options) {
  return Metric(
             "auc",
             [options](Value y_true, Value y_pred, Value sample_weight) {
               return BucketsOf(y_true, y_pred, sample_weight, options);
             },
             [options](absl::Span<const double> buckets) {
               return internal::AreaUnderCurve(
                   internal::CountsFromBuckets(buckets), options.curve,
                   options.summation_method);
             })
      .IgnoringMasks()
      .WithOptions(options);
}

}  // namespace muster
