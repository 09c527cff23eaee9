#include "common/learn/train/evaluate_run.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/log_lists.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/base/step_graphs.h"
#include "common/learn/train/base/step_parts.h"
#include "common/learn/train/call_each.h"
#include "common/learn/train/metric_sums.h"
#include "common/learn/train/model.h"

namespace muster {

absl::StatusOr<Tensor> ConcatenateRows(absl::Span<const Tensor> batches) {
  if (batches.empty()) {
    return absl::InvalidArgumentError("no batches to predict from");
  }
  Shape shape = batches.front().shape();
  int64_t row_count = 0;
  for (const Tensor& batch : batches) row_count += batch.shape().dim(0);
  shape.set_dim(0, row_count);
  Tensor all(batches.front().dtype(), shape);
  if (all.dtype() == DType::kString) {
    auto next = all.mutable_flat<std::string>().begin();
    for (const Tensor& batch : batches) {
      const auto strings = batch.flat<std::string>();
      next = std::copy(strings.begin(), strings.end(), next);
    }
    return all;
  }
  uint8_t* next = all.mutable_raw_data();
  for (const Tensor& batch : batches) {
    if (batch.size_bytes() == 0) continue;
    std::memcpy(next, batch.raw_data(), batch.size_bytes());
    next += batch.size_bytes();
  }
  return all;
}

absl::StatusOr<std::vector<Tensor>> PredictAll(const CompiledModel& model,
                                               const Dataset& data) {
  if (data.Cardinality() == Dataset::kInfinite) {
    return absl::InvalidArgumentError(
        "cannot predict for data that never ends; use Take()");
  }
  ASSIGN_OR_RETURN(const Graph step,
                   TracePredictStep(model.layer(), data.element_types()));
  ASSIGN_OR_RETURN(
      std::unique_ptr<StepLoop> loop,
      model.strategy()->CreateLoop(step, data, LoopKind::kPredict));

  std::vector<std::vector<Tensor>> batches(step.results.size());
  const auto keep = [&](absl::Span<const Tensor> results) {
    for (size_t i = 0; i < results.size(); ++i) {
      batches[i].push_back(results[i].Clone());
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(
      loop->Run(std::numeric_limits<int64_t>::max(), keep).status());
  std::vector<Tensor> predictions;
  for (const std::vector<Tensor>& output : batches) {
    ASSIGN_OR_RETURN(Tensor whole, ConcatenateRows(output));
    predictions.push_back(std::move(whole));
  }
  return predictions;
}

absl::StatusOr<std::unique_ptr<EvaluateRun>> EvaluateRun::Create(
    Model* model, const CompiledModel& compiled, const Dataset& data,
    const EvaluateOptions& options) {
  RETURN_IF_ERROR(data.status());
  if (options.steps.has_value() && *options.steps < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "steps of an evaluation: got ", *options.steps, ", at least 1"));
  }
  if (!options.steps.has_value() && data.Cardinality() == Dataset::kInfinite) {
    return absl::InvalidArgumentError(
        "cannot evaluate on data that never ends; specify the number of steps, "
        "or use Take()");
  }
  const Dataset bounded =
      options.steps.has_value() ? data.Take(*options.steps) : data;
  RETURN_IF_ERROR(bounded.status());

  ASSIGN_OR_RETURN(const StepParts parts, compiled.Parts(/*training=*/false));
  ASSIGN_OR_RETURN(const TracedStep step,
                   TraceEvaluateStep(parts, bounded.element_types()));
  ASSIGN_OR_RETURN(std::unique_ptr<StepLoop> loop,
                   compiled.strategy()->CreateLoop(step.graph, bounded,
                                                   LoopKind::kEvaluate));

  std::optional<int64_t> step_count;
  if (bounded.Cardinality() >= 0) step_count = bounded.Cardinality();
  return std::unique_ptr<EvaluateRun>(new EvaluateRun(
      model, std::move(loop), MetricSums(step.results), step_count, options));
}

EvaluateRun::EvaluateRun(Model* model, std::unique_ptr<StepLoop> loop,
                         MetricSums sums, std::optional<int64_t> step_count,
                         const EvaluateOptions& options)
    : model_(model),
      loop_(std::move(loop)),
      sums_(std::move(sums)),
      step_count_(step_count),
      options_(options) {}

void EvaluateRun::ServeWhen(std::function<bool()> is_due,
                            std::function<absl::Status()> serve) {
  StoppableLoop* const stoppable = loop_->stoppable();
  if (stoppable == nullptr) return;
  stoppable->StopWhen(std::move(is_due));
  serve_ = std::move(serve);
}

absl::StatusOr<Logs> EvaluateRun::Run() {
  ProgressBar bar({.target = step_count_,
                   .verbosity = ResolveVerbosity(
                       options_.verbose, model_->strategy()->is_chief()),
                   .first_step_is_apart = !loop_->StepDurations().has_value(),
                   .clock = options_.clock,
                   .output = options_.output});
  sums_.Reset();
  done_ = 0;
  RETURN_IF_ERROR(
      CallEach(options_.callbacks, &Callback::OnTestBegin, *model_));
  RETURN_IF_ERROR(AnnounceStep());
  const auto on_step = [&](absl::Span<const Tensor> results) {
    return OnStep(results, &bar);
  };
  bool is_interrupted = true;
  while (is_interrupted) {
    ASSIGN_OR_RETURN(const StepLoop::Outcome outcome,
                     loop_->Run(std::numeric_limits<int64_t>::max(), on_step));
    is_interrupted = outcome.was_told_to_stop;
    if (is_interrupted) RETURN_IF_ERROR(serve_());
  }
  if (done_ == 0) {
    return absl::InvalidArgumentError("the data to evaluate on has no batches");
  }
  bar.Finish(done_, Values());
  Logs logs = sums_.Values();
  RETURN_IF_ERROR(
      CallEach(options_.callbacks, &Callback::OnTestEnd, *model_, logs));
  return logs;
}

ProgressValues EvaluateRun::Values() const {
  return ShownValues(sums_.Values());
}

absl::Status EvaluateRun::OnStep(absl::Span<const Tensor> results,
                                 ProgressBar* bar) {
  RETURN_IF_ERROR(sums_.Add(results));
  ++done_;
  bar->Update(done_, bar->IsDue() ? Values() : ProgressValues{});
  if (options_.callbacks.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CallEach(options_.callbacks, &Callback::OnTestBatchEnd,
                           *model_, done_ - 1, sums_.Values()));
  return AnnounceStep();
}

absl::Status EvaluateRun::AnnounceStep() {
  if (step_count_.has_value() && done_ >= *step_count_) return absl::OkStatus();
  return CallEach(options_.callbacks, &Callback::OnTestBatchBegin, *model_,
                  done_);
}

}  // namespace muster
