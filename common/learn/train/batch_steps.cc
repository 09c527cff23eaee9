// The part of Model that runs single batches.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/batch_loop.h"
#include "common/learn/train/class_weights.h"
#include "common/learn/train/history.h"
#include "common/learn/train/metric_sums.h"
#include "common/learn/train/model.h"
#include "common/learn/train/step_graphs.h"
#include "common/learn/train/step_parts.h"

namespace muster {

absl::StatusOr<Logs> Model::TrainOnBatch(const Element& batch,
                                         const ClassWeights& class_weight) {
  RETURN_IF_ERROR(CheckHasOptimizer());
  RETURN_IF_ERROR(CheckClassWeights(class_weight));
  // They are constants of the step.
  if (train_batch_.class_weight != class_weight) {
    train_batch_ = {.class_weight = class_weight};
  }
  return RunOnBatch(batch, /*training=*/true);
}

absl::StatusOr<Logs> Model::TestOnBatch(const Element& batch) {
  return RunOnBatch(batch, /*training=*/false);
}

absl::StatusOr<Logs> Model::RunOnBatch(const Element& batch, bool training) {
  RETURN_IF_ERROR(CheckCompiled());
  BatchStep& kept = training ? train_batch_ : test_batch_;
  if (kept.loop == nullptr || !kept.loop->Fits(batch)) {
    const std::vector<TensorType> types = BatchLoop::TypesOf(batch);
    RETURN_IF_ERROR(BuildFor(types));
    ASSIGN_OR_RETURN(const StepParts parts, Parts(training, kept.class_weight));
    ASSIGN_OR_RETURN(const TracedStep step,
                     training ? TraceTrainStep(parts, types)
                              : TraceEvaluateStep(parts, types));
    kept.sums.emplace(step.results);
    ASSIGN_OR_RETURN(kept.loop,
                     BatchLoop::Create(*strategy_, step.graph, batch,
                                       training ? LoopKind::kTrainOnBatch
                                                : LoopKind::kEvaluate));
  }
  const absl::StatusOr<std::vector<Tensor>> results = kept.loop->Run(batch);
  if (!results.ok()) return AfterRollback(results.status());
  kept.sums->Reset();
  RETURN_IF_ERROR(kept.sums->Add(*results));
  return kept.sums->Values();
}

absl::StatusOr<std::vector<Tensor>> Model::PredictOnBatch(
    const Element& inputs) {
  RETURN_IF_ERROR(CheckCompiled());
  BatchStep& kept = predict_batch_;
  if (kept.loop == nullptr || !kept.loop->Fits(inputs)) {
    const std::vector<TensorType> types = BatchLoop::TypesOf(inputs);
    RETURN_IF_ERROR(BuildFor(types));
    ASSIGN_OR_RETURN(const Graph step, TracePredictStep(layer_, types));
    ASSIGN_OR_RETURN(kept.loop, BatchLoop::Create(*strategy_, step, inputs,
                                                  LoopKind::kPredict));
  }
  absl::StatusOr<std::vector<Tensor>> results = kept.loop->Run(inputs);
  if (!results.ok()) return AfterRollback(results.status());
  return results;
}

absl::Status Model::AfterRollback(const absl::Status& failure) {
  ASSIGN_OR_RETURN(const std::optional<Rollback> rollback,
                   strategy_->AwaitRollback(failure));
  if (!rollback.has_value()) return failure;
  return absl::AbortedError(
      absl::StrCat(failure.message(), ": ", rollback->undone_step_count,
                   " steps are undone, and training goes on from ",
                   rollback->checkpoint.empty()
                       ? std::string("the first values of all variables")
                       : absl::StrCat("checkpoint ", rollback->checkpoint)));
}

}  // namespace muster
