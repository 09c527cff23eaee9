#include "common/learn/train/batch_steps.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph.h"
#include "common/core/base/status_macros.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/step_graphs.h"
#include "common/learn/train/base/step_parts.h"

namespace muster {

absl::StatusOr<Logs> BatchSteps::Train(const Element& batch,
                                       const ClassWeights& class_weight) {
  RETURN_IF_ERROR(model_->CheckHasOptimizer());
  RETURN_IF_ERROR(CheckClassWeights(class_weight));
  // Class weights are constants of the compiled step.
  if (train_.class_weight != class_weight) {
    train_ = {.class_weight = class_weight};
  }
  return Run(batch, /*training=*/true, &train_);
}

absl::StatusOr<Logs> BatchSteps::Test(const Element& batch) {
  return Run(batch, /*training=*/false, &test_);
}

absl::StatusOr<Logs> BatchSteps::Run(const Element& batch, bool training,
                                     Step* step) {
  RETURN_IF_ERROR(model_->CheckCompiled());
  if (step->loop == nullptr || !step->loop->Fits(batch)) {
    const std::vector<TensorType> types = BatchLoop::TypesOf(batch);
    RETURN_IF_ERROR(model_->BuildFor(types));
    if (training) RETURN_IF_ERROR(model_->UseOptimizer());
    ASSIGN_OR_RETURN(const StepParts parts,
                     model_->Parts(training, step->class_weight));
    ASSIGN_OR_RETURN(const TracedStep traced,
                     training ? TraceTrainStep(parts, types)
                              : TraceEvaluateStep(parts, types));
    step->sums.emplace(traced.results);
    ASSIGN_OR_RETURN(step->loop,
                     BatchLoop::Create(*model_->strategy(), traced.graph, batch,
                                       training ? LoopKind::kTrainOnBatch
                                                : LoopKind::kEvaluate));
  }
  const absl::StatusOr<std::vector<Tensor>> results = step->loop->Run(batch);
  if (!results.ok()) return AfterRollback(results.status());
  step->sums->Reset();
  RETURN_IF_ERROR(step->sums->Add(*results));
  return step->sums->Values();
}

absl::StatusOr<std::vector<Tensor>> BatchSteps::Predict(const Element& inputs) {
  RETURN_IF_ERROR(model_->CheckCompiled());
  if (predict_.loop == nullptr || !predict_.loop->Fits(inputs)) {
    const std::vector<TensorType> types = BatchLoop::TypesOf(inputs);
    RETURN_IF_ERROR(model_->BuildFor(types));
    ASSIGN_OR_RETURN(const Graph graph,
                     TracePredictStep(model_->layer(), types));
    ASSIGN_OR_RETURN(predict_.loop,
                     BatchLoop::Create(*model_->strategy(), graph, inputs,
                                       LoopKind::kPredict));
  }
  absl::StatusOr<std::vector<Tensor>> results = predict_.loop->Run(inputs);
  if (!results.ok()) return AfterRollback(results.status());
  return results;
}

absl::Status BatchSteps::AfterRollback(const absl::Status& failure) {
  TrainingRecovery* const recovery = model_->strategy()->recovery();
  if (recovery == nullptr) return failure;
  ASSIGN_OR_RETURN(const std::optional<Rollback> rollback,
                   recovery->AwaitRollback(failure));
  if (!rollback.has_value()) return failure;
  return absl::AbortedError(
      absl::StrCat(failure.message(), ": ", rollback->undone_step_count,
                   " steps are undone, and training continues from ",
                   rollback->checkpoint.empty()
                       ? std::string("the initial values of all variables")
                       : absl::StrCat("checkpoint ", rollback->checkpoint)));
}

void BatchSteps::Reset() {
  train_ = {};
  test_ = {};
  predict_ = {};
}

}  // namespace muster
