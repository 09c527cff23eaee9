#ifndef COMMON_LEARN_TRAIN_EVALUATE_RUN_H_
#define COMMON_LEARN_TRAIN_EVALUATE_RUN_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/compiled_model.h"
#include "common/learn/train/history.h"
#include "common/learn/train/metric_sums.h"
#include "common/learn/train/model.h"
#include "common/learn/train/progress_bar.h"

namespace muster {

// Evaluates a model on one dataset, any number of times: Fit() does it once for
// each epoch. Not thread-safe.
class EvaluateRun {
 public:
  // `model` is borrowed, for callbacks. `compiled` is its compiled model, which
  // is built.
  static absl::StatusOr<std::unique_ptr<EvaluateRun>> Create(
      Model* model, const CompiledModel& compiled, const Dataset& data,
      const EvaluateOptions& options);

  // Goes through the data once.
  absl::StatusOr<Logs> Run();

 private:
  EvaluateRun(Model* model, std::unique_ptr<StepLoop> loop, MetricSums sums,
              std::optional<int64_t> step_count,
              const EvaluateOptions& options);

  absl::Status OnStep(absl::Span<const Tensor> results, ProgressBar* bar);
  // As FitRun's.
  absl::Status AnnounceStep();
  ProgressValues Values() const;

  Model* const model_;
  const std::unique_ptr<StepLoop> loop_;
  MetricSums sums_;
  const std::optional<int64_t> step_count_;  // When known.
  const EvaluateOptions options_;
  int64_t done_ = 0;  // Steps of this run.
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_EVALUATE_RUN_H_
