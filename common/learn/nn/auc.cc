#include "common/learn/nn/auc.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/confusion_metrics.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/sample_weights.h"

namespace muster {
namespace internal {
namespace {

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

ConfusionCounts CountsFromAbove(absl::Span<const double> above) {
  const size_t threshold_count = above.size() / 2;
  const auto middle = above.begin() + threshold_count;
  return {.true_positives = {above.begin(), middle},
          .false_positives = {middle, above.end()},
          .positives = above.front(),
          .negatives = *middle};
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
    switch (curve) {
      case AucCurve::kRoc:
        *x = DivideNoNan(fp, counts.negatives);
        *y = recall;
        return;
      case AucCurve::kPr:
        *x = recall;
        *y = DivideNoNan(tp, tp + fp);
        return;
      case AucCurve::kPrGain: {
        // As in Keras: both are limited where there are no true positives.
        const double scale = DivideNoNan(counts.positives, counts.negatives);
        const double missed = counts.positives - tp;
        *x = tp == 0 ? 0 : std::max(1 - scale * missed / tp, 0.0);
        *y = tp == 0 ? 1 : 1 - scale * fp / tp;
        return;
      }
    }
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

// Below and above all predictions, as in Keras.
constexpr double kMargin = 1e-7;

// The thresholds between the first and the last.
std::vector<double> SortedThresholds(const AucOptions& options) {
  std::vector<double> thresholds = options.thresholds;
  std::sort(thresholds.begin(), thresholds.end());
  return thresholds;
}

// True if predictions can be sorted into buckets of one width. The criterion of
// Keras.
bool AreEven(const std::vector<double>& thresholds) {
  if (thresholds.empty()) return true;
  const double interval_count = static_cast<double>(thresholds.size() + 1);
  for (size_t i = 0; i < thresholds.size(); ++i) {
    const double even = static_cast<double>(i + 1) / interval_count;
    if (std::abs(thresholds[i] - even) > kMargin + 1e-5 * even) return false;
  }
  return true;
}

int64_t ThresholdCount(const AucOptions& options) {
  return options.thresholds.empty()
             ? options.num_thresholds
             : static_cast<int64_t>(options.thresholds.size()) + 2;
}

// Returns what is wrong with the options for such predictions; empty if nothing
// is.
std::string WhatIsWrong(const AucOptions& options, const TensorType& type) {
  if (options.thresholds.empty() &&
      (options.num_thresholds < 2 ||
       options.num_thresholds > kThresholdCountMax)) {
    return absl::StrCat("num_thresholds is ", options.num_thresholds,
                        ", expected 2 to ", kThresholdCountMax);
  }
  for (const double threshold : options.thresholds) {
    if (threshold >= 0 && threshold <= 1) continue;
    return absl::StrCat("a threshold is ", threshold, ", expected 0 to 1");
  }
  const int64_t label_count =
      type.shape.rank() > 1 ? type.shape.dims().back() : Shape::kUnknown;
  if (options.multi_label &&
      (type.shape.rank() != 2 || label_count == Shape::kUnknown)) {
    return absl::StrCat(
        "with multi_label, expected predictions [batch, labels], got ",
        type.ToString());
  }
  if (options.multi_label &&
      options.num_labels.value_or(label_count) != label_count) {
    return absl::StrCat("num_labels is ", *options.num_labels,
                        ", and predictions are ", type.ToString());
  }
  const int64_t weight_count =
      static_cast<int64_t>(options.label_weights.size());
  if (weight_count > 0 && weight_count != label_count) {
    return absl::StrCat("there are ", weight_count,
                        " label_weights, and predictions are ",
                        type.ToString());
  }
  return "";
}

Value Row(Value like, const std::vector<double>& numbers) {
  const std::vector<float> row(numbers.begin(), numbers.end());
  return like.builder()->Constant(Tensor::FromSpan<float>(
      Shape({1, static_cast<int64_t>(row.size())}), row));
}

// Of predictions [n, 1], which bucket each lies in, as one-hot rows
// [n, thresholds]; of thresholds that are not even, which it lies above.
Value PlacesOf(Value y_pred, const AucOptions& options) {
  const std::vector<double> thresholds = SortedThresholds(options);
  if (AreEven(thresholds)) {
    const int64_t count = ThresholdCount(options);
    y_pred = Minimum(Maximum(y_pred, 0.0), 1.0);
    const Value bucket =
        Relu(Ceil(y_pred * static_cast<double>(count - 1)) - 1.0);
    return OneHot(Cast(Reshape(bucket, {-1}), DType::kInt32), count);
  }
  std::vector<double> all = {-kMargin};
  all.insert(all.end(), thresholds.begin(), thresholds.end());
  all.push_back(1 + kMargin);
  return Cast(y_pred > Row(y_pred, all), DType::kFloat32);
}

// float32[2, thresholds]: the weights of positive and of negative labels at the
// places of their predictions. With multi_label [labels, 2, thresholds].
Value SumsOf(Value y_true, Value y_pred, Value sample_weight,
             const AucOptions& options) {
  if (!y_pred.ok()) return y_pred;
  const std::string wrong = WhatIsWrong(options, y_pred.type());
  if (!wrong.empty()) {
    y_pred.builder()->ReportError(
        absl::InvalidArgumentError(absl::StrCat("Auc: ", wrong)));
    return Value();
  }
  if (y_pred.dtype() != DType::kFloat32) {
    y_pred = Cast(y_pred, DType::kFloat32);
  }
  y_true = internal::AlignLabels(y_true, y_pred);
  if (options.from_logits) y_pred = Sigmoid(y_pred);

  Value positive = Cast(NotEqual(y_true, 0.0), DType::kFloat32);
  Value negative = 1.0 - positive;
  const auto weigh = [&](Value weights) {
    positive = positive * weights;
    negative = negative * weights;
  };
  if (internal::HasWeights(sample_weight)) {
    weigh(internal::AlignWeights(sample_weight, positive));
  }
  if (!options.multi_label && !options.label_weights.empty()) {
    weigh(Row(y_pred, options.label_weights));
  }
  const Value places = PlacesOf(Reshape(y_pred, {-1, 1}), options);
  const auto flat = [](Value x) { return Reshape(x, {-1}); };
  if (!options.multi_label) {
    return MatMul(Stack({flat(positive), flat(negative)}, 0), places);
  }
  const int64_t label_count = y_pred.shape().dims().back();
  const auto sum = [&](Value weights) {
    const Value at_places = Reshape(weights, {-1, 1}) * places;
    return Sum(Reshape(at_places, {-1, label_count, ThresholdCount(options)}),
               {0});
  };
  return Stack({sum(positive), sum(negative)}, 1);
}

double AreaOf(absl::Span<const double> sums, const AucOptions& options,
              bool are_even) {
  const size_t size = 2 * static_cast<size_t>(ThresholdCount(options));
  double area_sum = 0;
  double weight_sum = 0;
  for (size_t label = 0; label * size < sums.size(); ++label) {
    const absl::Span<const double> of_label = sums.subspan(label * size, size);
    const double weight = options.multi_label && !options.label_weights.empty()
                              ? options.label_weights[label]
                              : 1;
    area_sum += weight * internal::AreaUnderCurve(
                             are_even ? internal::CountsFromBuckets(of_label)
                                      : internal::CountsFromAbove(of_label),
                             options.curve, options.summation_method);
    weight_sum += weight;
  }
  return internal::DivideNoNan(area_sum, weight_sum);
}

}  // namespace

Metric Auc(const AucOptions& options) {
  return Metric(
             "auc",
             [options](Value y_true, Value y_pred, Value sample_weight) {
               return SumsOf(y_true, y_pred, sample_weight, options);
             },
             Metric::Result(
                 [options, are_even = AreEven(SortedThresholds(options))](
                     absl::Span<const double> sums) {
                   return AreaOf(sums, options, are_even);
                 }))
      .IgnoringMasks()
      .WithOptions(options);
}

}  // namespace muster
