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

// Accumulates the losses and metric statistics of steps. Not thread-safe.
class MetricSums {
 public:
  explicit MetricSums(StepResults results);

  const StepResults& results() const { return results_; }

  // Clears the sums at the beginning of an epoch.
  void Reset();

  // Adds the results of one step.
  //   kInternal  the results do not match StepResults
  absl::Status Add(absl::Span<const Tensor> results);

  // Returns the losses and metrics of all steps since Reset().
  Logs Values() const;

  // Returns the name and value of a loss or metric whose sums are not finite;
  // unset if all are finite.
  std::optional<std::pair<std::string, double>> NonFinite() const;

  // The scale of the loss in the last step; unset if losses are not scaled.
  std::optional<double> loss_scale() const { return loss_scale_; }

  // The sums so far, for Restore().
  const std::vector<std::vector<double>>& sums() const { return sums_; }
  //   kInvalidArgument  the sums are those of other metrics
  absl::Status Restore(std::vector<std::vector<double>> sums);

  int64_t example_count() const {
    return sums_[0].empty() ? 0 : static_cast<int64_t>(sums_[0][1]);
  }

 private:
  // `sums` is {sum over the examples, examples}.
  static absl::Status AddLoss(const Tensor& loss, std::vector<double>* sums);
  absl::Status TakeLossScale(const Tensor& scale);

  StepResults results_;
  // The sums of each loss, then of each metric.
  std::vector<std::vector<double>> sums_;
  std::optional<double> loss_scale_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_METRIC_SUMS_H_
