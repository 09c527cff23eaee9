#ifndef COMMON_LEARN_TRAIN_BATCH_STEPS_H_
#define COMMON_LEARN_TRAIN_BATCH_STEPS_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/train/base/class_weights.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/batch_loop.h"
#include "common/learn/train/compiled_model.h"
#include "common/learn/train/metric_sums.h"

namespace muster {

// The steps behind Model::TrainOnBatch(), TestOnBatch() and PredictOnBatch().
// Each is compiled when it is first needed, and kept for batches of the same
// types. Not thread-safe.
class BatchSteps {
 public:
  // `model` is borrowed.
  explicit BatchSteps(CompiledModel* model) : model_(model) {}

  absl::StatusOr<Logs> Train(const Element& batch,
                             const ClassWeights& class_weight);
  absl::StatusOr<Logs> Test(const Element& batch);
  absl::StatusOr<std::vector<Tensor>> Predict(const Element& inputs);

  // Drops the compiled steps: the model has been compiled again.
  void Reset();

 private:
  struct Step {
    std::unique_ptr<BatchLoop> loop = nullptr;
    std::optional<MetricSums> sums = std::nullopt;
    ClassWeights class_weight = {};
  };

  absl::StatusOr<Logs> Run(const Element& batch, bool training, Step* step);
  // Returns kAborted if `failure` has rolled training back, otherwise
  // `failure`.
  absl::Status AfterRollback(const absl::Status& failure);

  CompiledModel* const model_;
  Step train_;
  Step test_;
  Step predict_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BATCH_STEPS_H_
