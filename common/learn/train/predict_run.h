#ifndef COMMON_LEARN_TRAIN_PREDICT_RUN_H_
#define COMMON_LEARN_TRAIN_PREDICT_RUN_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/train/compiled_model.h"

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

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_PREDICT_RUN_H_
