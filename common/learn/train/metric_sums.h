#ifndef COMMON_LEARN_TRAIN_METRIC_SUMS_H_
#define COMMON_LEARN_TRAIN_METRIC_SUMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/step_results.h"

namespace muster {

// Adds up what steps say about the loss and the metrics. Not thread-safe.
class MetricSums {
 public:
  explicit MetricSums(StepResults results);

  const StepResults& results() const { return results_; }

  // Forgets everything: a new epoch begins.
  void Reset();

  // Takes in the results of one step.
  //   kInternal  these are not the results of such a step
  absl::Status Add(absl::Span<const Tensor> results);

  // The losses and the metrics, of all steps since Reset().
  Logs Values() const;

  // The name and the value of a loss or metric whose sums are no longer finite;
  // unset where all are.
  std::optional<std::pair<std::string, double>> NonFinite() const;

  // The scale of the loss in the last step; unset if losses are not scaled.
  std::optional<double> loss_scale() const { return loss_scale_; }

  // The sums so far, to continue from.
  const std::vector<std::vector<double>>& sums() const { return sums_; }
  //   kInvalidArgument  these are of other metrics
  absl::Status Restore(std::vector<std::vector<double>> sums);

  int64_t example_count() const {
    return sums_[0].empty() ? 0 : static_cast<int64_t>(sums_[0][1]);
  }

 private:
  // `sums` is {sum over the examples, examples}.
  static absl::Status AddLoss(const Tensor& loss, std::vector<double>* sums);
  absl::Status TakeLossScale(const Tensor& scale);

  StepResults results_;
  // Of each loss, then of each metric.
  std::vector<std::vector<double>> sums_;
  std::optional<double> loss_scale_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_METRIC_SUMS_H_
