#ifndef COMMON_LEARN_NN_METRIC_H_
#define COMMON_LEARN_NN_METRIC_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/loss.h"

namespace muster {

// A measure of a model's quality. Two functions: one adds nodes that compute
// a batch's statistics, numbers that add up over batches, replicas and workers;
// one makes the metric's value from their sum. So a metric needs no variables,
// and steps may finish in any order.
//
// Equivalent to: keras.metrics.Metric. A value, cheap to copy.
class Metric {
 public:
  // float32 of any fixed shape. `sample_weight` belongs to no graph when there
  // are neither weights nor a mask.
  using Statistics =
      std::function<Value(Value y_true, Value y_pred, Value sample_weight)>;
  using Result = std::function<double(absl::Span<const double> statistics)>;
  // For a metric whose value is a list of numbers, such as one for each class.
  // Logs have each of them, as "f1_score[0]" (LogEntryName()).
  using Results =
      std::function<std::vector<double>(absl::Span<const double> statistics)>;

  Metric(absl::string_view name, Statistics statistics, Result result);
  Metric(absl::string_view name, Statistics statistics, Results results);

  // The weighted mean of the losses of examples.
  Metric(const Loss& loss);  // NOLINT: a loss is a metric.

  // The metric of this name, which Compile() looks up: "accuracy", "mae",
  // "AUC", ... with Keras' defaults. Logs have it under this name.
  Metric(const char* name)  // NOLINT: {.metrics = {"accuracy", "mae"}}.
      : Metric(name, nullptr, Result()) {}

  const std::string& name() const { return name_; }
  // True if this is a name that has not been looked up.
  bool is_name() const { return statistics_ == nullptr; }
  // The name that the metric was made with, which Named() does not change.
  const std::string& kind() const { return kind_; }
  Metric Named(absl::string_view name) const;
  // The same metric, but padding counts like everything else.
  Metric IgnoringMasks() const;
  // As Loss::WithOptions().
  template <typename Options>
  Metric WithOptions(Options options) const {
    Metric metric = *this;
    metric.visit_options_ =
        [options = std::move(options)](ConfigVisitor& visitor) mutable {
          options.VisitConfig(visitor);
        };
    return metric;
  }
  // As Loss::visit_options().
  const std::function<void(ConfigVisitor&)>& visit_options() const {
    return visit_options_;
  }

  // A mask, as Masks has it, is a weight of 0 for padding: the function is
  // handed it as such, or multiplied into the weights that there are. Weights
  // or a mask that belong to no graph are none.
  Value StatisticsOf(Value y_true, Value y_pred) const;
  Value StatisticsOf(Value y_true, Value y_pred, Value sample_weight) const;
  Value StatisticsOf(Value y_true, Value y_pred, Value sample_weight,
                     Value mask) const;
  // True if the value is a list of numbers.
  bool is_list() const { return results_ != nullptr; }
  // 0 when nothing has been seen. The mean of a list.
  double ResultOf(absl::Span<const double> statistics) const;
  // The list, or the one number.
  std::vector<double> ResultsOf(absl::Span<const double> statistics) const;

 private:
  std::string name_;
  Statistics statistics_;
  Result result_;    // Null: the value is a list.
  Results results_;  // Null: the value is one number.
  bool heeds_masks_ = true;
  std::string kind_;
  std::function<void(ConfigVisitor&)> visit_options_;
};

// Statistics and result of a weighted mean: {sum, count}.
Value MeanStatistics(Value values, Value sample_weight);
Value MeanStatistics(Value values);
double MeanResult(absl::Span<const double> statistics);

}  // namespace muster

#endif  // COMMON_LEARN_NN_METRIC_H_
