// The part of Model that runs single batches.
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/dataset/dataset.h"
#include "common/graph/graph.h"
#include "common/strategy/strategy.h"
#include "common/tensor/tensor.h"
#include "common/train/batch_loop.h"
#include "common/train/history.h"
#include "common/train/metric_sums.h"
#include "common/train/model.h"
#include "common/train/step_graphs.h"
#include "common/train/step_parts.h"

namespace muster {

absl::StatusOr<Logs> Model::TrainOnBatch(const Element& batch) {
  RETURN_IF_ERROR(CheckHasOptimizer());
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
    ASSIGN_OR_RETURN(const StepParts parts, Parts(training));
    ASSIGN_OR_RETURN(const TracedStep step,
                     training ? TraceTrainStep(parts, types)
                              : TraceEvaluateStep(parts, types));
    kept.sums.emplace(step.results);
    ASSIGN_OR_RETURN(
        kept.loop,
        BatchLoop::Create(*strategy_, step.graph, batch,
                          training ? LoopKind::kTrain : LoopKind::kEvaluate));
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> results, kept.loop->Run(batch));
  kept.sums->Reset();
  RETURN_IF_ERROR(kept.sums->Add(results));
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
  return kept.loop->Run(inputs);
}

}  // namespace muster
