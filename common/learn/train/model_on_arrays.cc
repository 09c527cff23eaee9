// The part of Model that takes examples in memory: they become Datasets.
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/train/array_batches.h"
#include "common/learn/train/compiled_model.h"
#include "common/learn/train/fit_options.h"
#include "common/learn/train/history.h"
#include "common/learn/train/model.h"

namespace muster {

absl::StatusOr<History> Model::Fit(const Element& arrays,
                                   const FitOptions& options) {
  // A call that is made again after an error goes through the same order, so
  // that callbacks can continue in it.
  const uint64_t seed =
      FoldIn(FoldIn(compiled_->seed(), "shuffle"), array_fit_count_);
  ASSIGN_OR_RETURN(const FitCall call, FitCallOfArrays(arrays, options, seed));
  ASSIGN_OR_RETURN(History history, Fit(call.data, call.options));
  ++array_fit_count_;
  return history;
}

absl::StatusOr<Logs> Model::Evaluate(const Element& arrays,
                                     const EvaluateOptions& options) {
  ASSIGN_OR_RETURN(
      const Dataset data,
      BatchArrays("Evaluate", arrays, options.batch_size, options.steps));
  EvaluateOptions of_batches = options;
  of_batches.batch_size = std::nullopt;
  return Evaluate(data, of_batches);
}

absl::StatusOr<Tensor> Model::Predict(const Element& arrays,
                                      const PredictOptions& options) {
  ASSIGN_OR_RETURN(std::vector<Tensor> predictions,
                   PredictAll(arrays, options));
  return std::move(predictions.front());
}

absl::StatusOr<std::vector<Tensor>> Model::PredictAll(
    const Element& arrays, const PredictOptions& options) {
  ASSIGN_OR_RETURN(const Dataset data,
                   BatchArrays("Predict", arrays, options.batch_size,
                               /*steps=*/std::nullopt));
  return PredictAll(data);
}

}  // namespace muster
