#ifndef COMMON_LEARN_TRAIN_EVALUATE_RUN_H_
#define COMMON_LEARN_TRAIN_EVALUATE_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/compiled_model.h"
#include "common/learn/train/metric_sums.h"
#include "common/learn/train/model.h"

namespace muster {

// Joins the predictions for batches along their rows.
//   kInvalidArgument  there are no batches
absl::StatusOr<Tensor> ConcatenateRows(absl::Span<const Tensor> batches);

// Returns each output of `model`, which must be built, for all of `data`, in
// order. Labels are ignored.
//   kInvalidArgument  the data has no batches, or never ends
//   others            errors of data and strategy
absl::StatusOr<std::vector<Tensor>> PredictAll(const CompiledModel& model,
                                               const Dataset& data);

// Evaluates a model on one dataset, any number of times. Fit() uses one for
// validation. Not thread-safe.
class EvaluateRun {
 public:
  // `model` is borrowed, for callbacks. `compiled` is its compiled model, which
  // must be built.
  static absl::StatusOr<std::unique_ptr<EvaluateRun>> Create(
      Model* model, const CompiledModel& compiled, const Dataset& data,
      const EvaluateOptions& options);

  // Lets Run() serve requests. Run() calls `is_due` before each step. If it
  // returns true, Run() finishes the step and calls `serve`; an error of
  // `serve` ends Run(). Synchronous workers call `serve` after the same step,
  // whichever worker's `is_due` returned true. Must be called on all of them or
  // on none. Has no effect on loops that cannot stop.
  void ServeWhen(std::function<bool()> is_due,
                 std::function<absl::Status()> serve);

  const StepResults& results() const { return sums_.results(); }

  // Evaluates the data once.
  absl::StatusOr<Logs> Run();

 private:
  EvaluateRun(Model* model, std::unique_ptr<StepLoop> loop, MetricSums sums,
              std::optional<int64_t> step_count,
              const EvaluateOptions& options);

  absl::Status OnStep(absl::Span<const Tensor> results, ProgressBar* bar);
  // As FitRun::AnnounceStep().
  absl::Status AnnounceStep();
  ProgressValues Values() const;

  Model* const model_;
  const std::unique_ptr<StepLoop> loop_;
  MetricSums sums_;
  const std::optional<int64_t> step_count_;  // Unset if unknown.
  const EvaluateOptions options_;
  int64_t done_ = 0;                     // Finished steps of this run.
  std::function<absl::Status()> serve_;  // May be empty.
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_EVALUATE_RUN_H_
