#include "common/learn/nn/confusion_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss_options.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/sample_weights.h"

namespace muster {
namespace {

using internal::DivideNoNan;
using internal::kEpsilon;

// Below all predictions, as in Keras.
constexpr double kLowest = -1e10;

Value Refuse(Value value, absl::string_view metric, absl::string_view why) {
  if (value.ok()) {
    value.builder()->ReportError(
        absl::InvalidArgumentError(absl::StrCat(metric, ": ", why)));
  }
  return Value();
}

// The criterion by which Keras tells thresholds that it can count in one pass.
bool IsEvenFrom0To1(absl::Span<const double> values) {
  if (values.size() < 3) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    const double even =
        static_cast<double>(i) / static_cast<double>(values.size() - 1);
    if (std::abs(values[i] - even) > kEpsilon + 1e-5 * even) return false;
  }
  return true;
}

// Where the confusion matrix is taken.
struct MatrixThresholds {
  // A prediction is positive if scale * prediction is greater.
  std::vector<float> values;
  double scale = 1;
  // Predictions are clipped to [0, 1] first.
  bool clips = false;
  std::optional<int64_t> top_k;
  std::optional<int64_t> class_id;

  static MatrixThresholds At(absl::Span<const double> values) {
    if (IsEvenFrom0To1(values)) {
      return Even(static_cast<int64_t>(values.size()));
    }
    MatrixThresholds thresholds;
    thresholds.values.assign(values.begin(), values.end());
    return thresholds;
  }
  // i / (count - 1). Predictions are multiplied by count - 1 in place of
  // dividing i, because Keras rounds so.
  static MatrixThresholds Even(int64_t count) {
    if (count == 1) return At({0.5});
    MatrixThresholds thresholds;
    // One too many is refused by WhatIsWrong().
    thresholds.values.resize(
        std::clamp<int64_t>(count, 0, kThresholdCountMax + 1));
    std::iota(thresholds.values.begin(), thresholds.values.end(), 0.f);
    thresholds.scale = static_cast<double>(count - 1);
    thresholds.clips = true;
    return thresholds;
  }
};

// Returns what is wrong with the options for predictions of this type; empty if
// nothing is.
std::string WhatIsWrong(const MatrixThresholds& thresholds,
                        const TensorType& type) {
  const int64_t class_count =
      type.shape.rank() > 1 ? type.shape.dims().back() : Shape::kUnknown;
  const auto threshold_count = static_cast<int64_t>(thresholds.values.size());
  if (threshold_count < 1 || threshold_count > kThresholdCountMax) {
    return absl::StrCat("expected 1 to ", kThresholdCountMax,
                        " thresholds, got ", threshold_count);
  }
  const auto in_classes = [&](const char* name, int64_t value, int64_t low,
                              int64_t high) -> std::string {
    if (class_count != Shape::kUnknown && value >= low && value <= high) {
      return "";
    }
    return absl::StrCat(name, " is ", value, "; expected ", low,
                        " or more, up to the number of classes, for "
                        "predictions [batch, classes], got ",
                        type.ToString());
  };
  if (thresholds.top_k.has_value()) {
    const std::string wrong =
        in_classes("top_k", *thresholds.top_k, 1, class_count);
    if (!wrong.empty()) return wrong;
  }
  if (!thresholds.class_id.has_value()) return "";
  return in_classes("class_id", *thresholds.class_id, 0, class_count - 1);
}

// `x` at the `k` greatest places of the last axis, kLowest elsewhere.
Value KeepTopK(Value x, int64_t k) {
  const int64_t class_count = x.shape().dims().back();
  Value rest = x;
  Value kept = ZerosLike(x);
  for (int64_t i = 0; i < k; ++i) {
    const Value greatest = OneHot(ArgMax(rest, -1), class_count);
    kept = kept + greatest;
    rest = rest + greatest * -1e30;
  }
  return x * kept + (1.0 - kept) * kLowest;
}

Value ClassOf(Value x, int64_t class_id) {
  const int rank = x.shape().rank();
  std::vector<int64_t> begin(rank, 0);
  std::vector<int64_t> size(rank, -1);
  begin.back() = class_id;
  size.back() = 1;
  return Slice(x, begin, size);
}

// The weight of true positives, false positives, false negatives and true
// negatives at each threshold, after one another.
Value ConfusionOf(absl::string_view metric, Value y_true, Value y_pred,
                  Value sample_weight, const MatrixThresholds& thresholds) {
  if (!y_true.ok() || !y_pred.ok()) return Value();
  const std::string wrong = WhatIsWrong(thresholds, y_pred.type());
  if (!wrong.empty()) return Refuse(y_pred, metric, wrong);
  if (y_pred.dtype() != DType::kFloat32) {
    y_pred = Cast(y_pred, DType::kFloat32);
  }
  y_true = internal::AlignLabels(y_true, y_pred);
  if (thresholds.top_k.has_value()) {
    y_pred = KeepTopK(y_pred, *thresholds.top_k);
  }
  if (thresholds.class_id.has_value()) {
    y_true = ClassOf(y_true, *thresholds.class_id);
    y_pred = ClassOf(y_pred, *thresholds.class_id);
  }
  if (thresholds.clips) y_pred = Minimum(Maximum(y_pred, 0.0), 1.0);

  Value positive = Cast(NotEqual(y_true, 0.0), DType::kFloat32);
  Value negative = 1.0 - positive;
  if (internal::HasWeights(sample_weight)) {
    const Value weights = internal::AlignWeights(sample_weight, positive);
    positive = positive * weights;
    negative = negative * weights;
  }
  const int64_t count = static_cast<int64_t>(thresholds.values.size());
  const Value row = y_pred.builder()->Constant(
      Tensor::FromSpan<float>(Shape({1, count}), thresholds.values));
  const Value above =
      Cast(Reshape(y_pred * thresholds.scale, {-1, 1}) > row, DType::kFloat32);
  const Value below = 1.0 - above;
  const Value labels =
      Stack({Reshape(positive, {-1}), Reshape(negative, {-1})}, 0);
  // [2, thresholds] each: of positive labels, and of negative ones.
  return Concat({MatMul(labels, above), MatMul(labels, below)}, 0);
}

// The confusion matrix at one threshold.
struct Confusion {
  double true_positives, false_positives, false_negatives, true_negatives;

  double precision() const {
    return DivideNoNan(true_positives, true_positives + false_positives);
  }
  double recall() const {
    return DivideNoNan(true_positives, true_positives + false_negatives);
  }
  double specificity() const {
    return DivideNoNan(true_negatives, true_negatives + false_positives);
  }
};

Confusion ConfusionAt(absl::Span<const double> statistics, size_t threshold) {
  const size_t count = statistics.size() / 4;
  return {.true_positives = statistics[threshold],
          .false_positives = statistics[count + threshold],
          .false_negatives = statistics[2 * count + threshold],
          .true_negatives = statistics[3 * count + threshold]};
}

template <typename Result>
Metric OfConfusion(absl::string_view name, MatrixThresholds thresholds,
                   Result result) {
  return Metric(
             name,
             [name = std::string(name), thresholds](Value y_true, Value y_pred,
                                                    Value sample_weight) {
               return ConfusionOf(name, y_true, y_pred, sample_weight,
                                  thresholds);
             },
             std::move(result))
      .IgnoringMasks();
}

// `result` at each threshold, which is one number if there is one.
Metric AtThresholds(absl::string_view name, const MatrixThresholds& thresholds,
                    double (*result)(const Confusion&)) {
  const size_t count = thresholds.values.size();
  if (count == 1) {
    return OfConfusion(name, thresholds,
                       Metric::Result([result](absl::Span<const double> sums) {
                         return result(ConfusionAt(sums, 0));
                       }));
  }
  return OfConfusion(
      name, thresholds,
      Metric::Results([result, count](absl::Span<const double> sums) {
        std::vector<double> results;
        for (size_t i = 0; i < count; ++i) {
          results.push_back(result(ConfusionAt(sums, i)));
        }
        return results;
      }));
}

MatrixThresholds ThresholdsOr(const ThresholdList& thresholds,
                              double otherwise) {
  return thresholds.values().empty()
             ? MatrixThresholds::At({otherwise})
             : MatrixThresholds::At(thresholds.values());
}

MatrixThresholds ForCount(const ConfusionCountOptions& options) {
  return ThresholdsOr(options.thresholds, 0.5);
}

MatrixThresholds ForPrecision(const PrecisionOptions& options) {
  MatrixThresholds thresholds = ThresholdsOr(
      options.thresholds, options.top_k.has_value() ? kLowest : 0.5);
  thresholds.top_k = options.top_k;
  thresholds.class_id = options.class_id;
  return thresholds;
}

void VisitThresholds(ConfigVisitor& visitor, ThresholdList& thresholds) {
  const bool has_some = !thresholds.values().empty();
  if (!visitor.IsPresent("thresholds", has_some)) return;
  visitor.VisitNumbers(
      Described("thresholds",
                "With several, logs have a list of one number for each."),
      thresholds.values());
  for (const double threshold : thresholds.values()) {
    if (threshold >= 0 && threshold <= 1) continue;
    visitor.Refuse("thresholds",
                   absl::StrCat("must be in [0, 1], got ", threshold));
  }
}

using Rate = double (Confusion::*)() const;

// The greatest `wanted` where `bounded` is at least `bound`.
Metric GreatestWhere(absl::string_view name, Rate wanted, Rate bounded,
                     const std::optional<double>& bound, int64_t num_thresholds,
                     const std::optional<int64_t>& class_id) {
  // Without a valid bound there are no thresholds, which is reported.
  MatrixThresholds thresholds = MatrixThresholds::Even(num_thresholds);
  thresholds.class_id = class_id;
  const double least = bound.value_or(-1);
  const auto statistics = [=, name = std::string(name)](
                              Value y_true, Value y_pred, Value sample_weight) {
    if (least >= 0 && least <= 1) {
      return ConfusionOf(name, y_true, y_pred, sample_weight, thresholds);
    }
    return Refuse(y_pred, name,
                  bound.has_value()
                      ? absl::StrCat("the bound is ", *bound,
                                     ", expected a number in [0, 1]")
                      : "the bound is missing, expected a number in [0, 1]");
  };
  const auto result = [=](absl::Span<const double> statistics) {
    double greatest = 0;
    for (size_t i = 0; i < statistics.size() / 4; ++i) {
      const Confusion confusion = ConfusionAt(statistics, i);
      if ((confusion.*bounded)() < least) continue;
      greatest = std::max(greatest, (confusion.*wanted)());
    }
    return greatest;
  };
  return Metric(name, statistics, result).IgnoringMasks();
}

template <typename Options>
void VisitAtThreshold(ConfigVisitor& visitor, const char* bound_name,
                      std::optional<double>& bound, Options& options) {
  double value = bound.value_or(0);
  if (visitor.IsPresent(bound_name, bound.has_value())) {
    visitor.Visit(bound_name, value);
    bound = value;
    if (value < 0 || value > 1) {
      visitor.Refuse(bound_name,
                     absl::StrCat("must be in [0, 1], got ", value));
    }
  } else {
    visitor.Refuse(bound_name, "is missing; expected a number in [0, 1]");
  }
  visitor.VisitPositive("num_thresholds", options.num_thresholds);
  if (options.num_thresholds > kThresholdCountMax) {
    visitor.Refuse("num_thresholds",
                   absl::StrCat("must be at most ", kThresholdCountMax,
                                ", got ", options.num_thresholds));
  }
  visitor.Visit("class_id", options.class_id);
}

void VisitFScore(ConfigVisitor& visitor, std::optional<FScoreAverage>& average,
                 std::optional<double>& threshold) {
  // In the order of FScoreAverage.
  static constexpr absl::string_view kAverages[] = {"micro", "macro",
                                                    "weighted"};
  if (visitor.IsPresent("average", average.has_value())) {
    FScoreAverage value = average.value_or(FScoreAverage::kMacro);
    visitor.Visit(
        Described("average",
                  "Absent: logs have a list of one score for each class."),
        value, kAverages);
    average = value;
  }
  visitor.Visit("threshold", threshold);
  if (threshold.has_value() && (*threshold <= 0 || *threshold > 1)) {
    visitor.Refuse("threshold",
                   absl::StrCat("must be in (0, 1], got ", *threshold));
  }
}

// [4 * classes]: true positives, false positives, false negatives and labels of
// each class.
Value ClassCountsOf(absl::string_view metric, Value y_true, Value y_pred,
                    Value sample_weight, const FBetaScoreOptions& options) {
  if (!y_true.ok() || !y_pred.ok()) return Value();
  if (y_pred.shape().rank() != 2 ||
      y_pred.shape().dims().back() == Shape::kUnknown ||
      y_true.shape().rank() != 2) {
    return Refuse(y_pred, metric,
                  absl::StrCat("expected labels and predictions [batch, "
                               "classes], got ",
                               y_true.type().ToString(), " and ",
                               y_pred.type().ToString()));
  }
  y_pred = Cast(y_pred, DType::kFloat32);
  y_true = Cast(y_true, DType::kFloat32);
  const Value is_positive =
      options.threshold.has_value()
          ? y_pred > *options.threshold
          : LogicalAnd(y_pred >= Max(y_pred, {-1}, {.keep_dims = true}),
                       Abs(y_pred) > 1e-9);
  const Value positive = Cast(is_positive, DType::kFloat32);
  const auto sum = [&](Value x) {
    if (internal::HasWeights(sample_weight)) {
      x = x * internal::AlignWeights(sample_weight, x);
    }
    return Sum(x, {0});
  };
  return Concat({sum(positive * y_true), sum(positive * (1.0 - y_true)),
                 sum((1.0 - positive) * y_true), sum(y_true)},
                0);
}

double FScoreOf(const Confusion& counts, double beta) {
  const double tp = counts.true_positives;
  const double precision = tp / (tp + counts.false_positives + kEpsilon);
  const double recall = tp / (tp + counts.false_negatives + kEpsilon);
  return (1 + beta * beta) * precision * recall /
         (beta * beta * precision + recall + kEpsilon);
}

double FScoreResult(absl::Span<const double> statistics, FScoreAverage average,
                    double beta) {
  const size_t class_count = statistics.size() / 4;
  Confusion all = {};
  double score_sum = 0;
  double weighted_sum = 0;
  double label_count = 0;
  for (size_t i = 0; i < class_count; ++i) {
    const Confusion counts = ConfusionAt(statistics, i);
    const double labels = statistics[3 * class_count + i];
    const double score = FScoreOf(counts, beta);
    score_sum += score;
    weighted_sum += score * labels;
    label_count += labels;
    all.true_positives += counts.true_positives;
    all.false_positives += counts.false_positives;
    all.false_negatives += counts.false_negatives;
  }
  switch (average) {
    case FScoreAverage::kMicro:
      return FScoreOf(all, beta);
    case FScoreAverage::kMacro:
      return score_sum / static_cast<double>(class_count);
    case FScoreAverage::kWeighted:
      return weighted_sum / (label_count + kEpsilon);
  }
  return 0;
}

std::vector<double> FScores(absl::Span<const double> statistics, double beta) {
  std::vector<double> scores;
  for (size_t i = 0; i < statistics.size() / 4; ++i) {
    scores.push_back(FScoreOf(ConfusionAt(statistics, i), beta));
  }
  return scores;
}

Metric FScore(absl::string_view name, const FBetaScoreOptions& options) {
  const Metric::Statistics statistics = [name = std::string(name), options](
                                            Value y_true, Value y_pred,
                                            Value sample_weight) {
    return ClassCountsOf(name, y_true, y_pred, sample_weight, options);
  };
  if (!options.average.has_value()) {
    return Metric(name, statistics,
                  Metric::Results(
                      [beta = options.beta](absl::Span<const double> sums) {
                        return FScores(sums, beta);
                      }))
        .IgnoringMasks();
  }
  return Metric(
             name, statistics,
             Metric::Result([average = *options.average, beta = options.beta](
                                absl::Span<const double> sums) {
               return FScoreResult(sums, average, beta);
             }))
      .IgnoringMasks();
}

}  // namespace

void ConfusionCountOptions::VisitConfig(ConfigVisitor& visitor) {
  VisitThresholds(visitor, thresholds);
}

void PrecisionOptions::VisitConfig(ConfigVisitor& visitor) {
  VisitThresholds(visitor, thresholds);
  visitor.Visit("top_k", top_k);
  visitor.Visit("class_id", class_id);
}

void SensitivityAtSpecificityOptions::VisitConfig(ConfigVisitor& visitor) {
  VisitAtThreshold(visitor, "specificity", specificity, *this);
}

void SpecificityAtSensitivityOptions::VisitConfig(ConfigVisitor& visitor) {
  VisitAtThreshold(visitor, "sensitivity", sensitivity, *this);
}

void PrecisionAtRecallOptions::VisitConfig(ConfigVisitor& visitor) {
  VisitAtThreshold(visitor, "recall", recall, *this);
}

void RecallAtPrecisionOptions::VisitConfig(ConfigVisitor& visitor) {
  VisitAtThreshold(visitor, "precision", precision, *this);
}

void F1ScoreOptions::VisitConfig(ConfigVisitor& visitor) {
  VisitFScore(visitor, average, threshold);
}

void FBetaScoreOptions::VisitConfig(ConfigVisitor& visitor) {
  VisitFScore(visitor, average, threshold);
  visitor.Visit("beta", beta);
  if (beta <= 0) {
    visitor.Refuse("beta", absl::StrCat("must be more than 0, got ", beta));
  }
}

Metric TruePositives(const ConfusionCountOptions& options) {
  return AtThresholds("true_positives", ForCount(options),
                      [](const Confusion& c) { return c.true_positives; })
      .WithOptions(options);
}

Metric TrueNegatives(const ConfusionCountOptions& options) {
  return AtThresholds("true_negatives", ForCount(options),
                      [](const Confusion& c) { return c.true_negatives; })
      .WithOptions(options);
}

Metric FalsePositives(const ConfusionCountOptions& options) {
  return AtThresholds("false_positives", ForCount(options),
                      [](const Confusion& c) { return c.false_positives; })
      .WithOptions(options);
}

Metric FalseNegatives(const ConfusionCountOptions& options) {
  return AtThresholds("false_negatives", ForCount(options),
                      [](const Confusion& c) { return c.false_negatives; })
      .WithOptions(options);
}

Metric Precision(const PrecisionOptions& options) {
  return AtThresholds("precision", ForPrecision(options),
                      [](const Confusion& c) { return c.precision(); })
      .WithOptions(options);
}

Metric Recall(const PrecisionOptions& options) {
  return AtThresholds("recall", ForPrecision(options),
                      [](const Confusion& c) { return c.recall(); })
      .WithOptions(options);
}

Metric SensitivityAtSpecificity(
    const SensitivityAtSpecificityOptions& options) {
  return GreatestWhere("sensitivity_at_specificity", &Confusion::recall,
                       &Confusion::specificity, options.specificity,
                       options.num_thresholds, options.class_id)
      .WithOptions(options);
}

Metric SpecificityAtSensitivity(
    const SpecificityAtSensitivityOptions& options) {
  return GreatestWhere("specificity_at_sensitivity", &Confusion::specificity,
                       &Confusion::recall, options.sensitivity,
                       options.num_thresholds, options.class_id)
      .WithOptions(options);
}

Metric PrecisionAtRecall(const PrecisionAtRecallOptions& options) {
  return GreatestWhere("precision_at_recall", &Confusion::precision,
                       &Confusion::recall, options.recall,
                       options.num_thresholds, options.class_id)
      .WithOptions(options);
}

Metric RecallAtPrecision(const RecallAtPrecisionOptions& options) {
  return GreatestWhere("recall_at_precision", &Confusion::recall,
                       &Confusion::precision, options.precision,
                       options.num_thresholds, options.class_id)
      .WithOptions(options);
}

Metric F1Score(const F1ScoreOptions& options) {
  return FScore("f1_score",
                {.average = options.average, .threshold = options.threshold})
      .WithOptions(options);
}

Metric FBetaScore(const FBetaScoreOptions& options) {
  return FScore("fbeta_score", options).WithOptions(options);
}

}  // namespace muster
