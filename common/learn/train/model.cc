#include "common/learn/train/model.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "common/learn/strategy/default_strategy.h"
#include "common/learn/strategy/replica/strategy_scope.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/array_batches.h"
#include "common/learn/train/class_weights.h"
#include "common/learn/train/compiled_outputs.h"
#include "common/learn/train/evaluate_run.h"
#include "common/learn/train/fit_run.h"
#include "common/learn/train/history.h"
#include "common/learn/train/model_summary.h"
#include "common/learn/train/random_seed.h"
#include "common/learn/train/step_forward.h"
#include "common/learn/train/step_graphs.h"
#include "common/learn/train/step_parts.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

absl::StatusOr<Tensor> Concatenate(absl::Span<const Tensor> batches) {
  if (batches.empty()) {
    return absl::InvalidArgumentError("no batches to predict from");
  }
  Shape shape = batches.front().shape();
  int64_t row_count = 0;
  for (const Tensor& batch : batches) row_count += batch.shape().dim(0);
  shape.set_dim(0, row_count);
  Tensor all(batches.front().dtype(), shape);
  uint8_t* next = all.mutable_raw_data();
  for (const Tensor& batch : batches) {
    if (batch.size_bytes() == 0) continue;
    std::memcpy(next, batch.raw_data(), batch.size_bytes());
    next += batch.size_bytes();
  }
  return all;
}

}  // namespace

Model::Model(LayerPtr layer) : layer_(std::move(layer)) {
  // A whole model's weights are named by its layers: "dense/kernel". A single
  // layer names its own.
  const bool has_layers = !layer_->layers().empty();
  layer_->SetPath(has_layers               ? ""
                  : layer_->name().empty() ? ToSnakeCase(layer_->kind())
                                           : layer_->name());
  // So that a summary has shapes. Mistakes are found again by Build().
  const std::vector<TensorType> inputs = layer_->input_types();
  if (!inputs.empty()) TraceForward(layer_, inputs).IgnoreError();
}

Model::Model(LayerOutputs inputs, LayerOutputs outputs,
             const FunctionalOptions& options)
    : Model(Functional(std::move(inputs), std::move(outputs), options)) {}

Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

absl::Status Model::Compile(Strategy& strategy, CompileOptions options) {
  if (built_ && strategy_ != &strategy) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the model's weights live with strategy \"",
        std::string(strategy_->name()), "\"; they cannot move to another"));
  }
  Strategy* const in_scope = StrategyInScope();
  if (in_scope != nullptr && in_scope != &strategy) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a model cannot be compiled with strategy \"",
        std::string(strategy.name()), "\" in the scope of strategy \"",
        std::string(in_scope->name()), "\""));
  }
  if (options.steps_per_execution < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("Compile: steps_per_execution must be at least 1, got ",
                     options.steps_per_execution));
  }
  const bool has_optimizer =
      options.optimizer.rule_case() != proto::Optimizer::RULE_NOT_SET;
  if (has_optimizer) {
    RETURN_IF_ERROR(strategy.variables().SetOptimizer(options.optimizer));
  }
  strategy_ = &strategy;
  options_ = std::move(options);
  seed_ = options_.seed.value_or(RandomSeed());
  train_batch_ = {};
  test_batch_ = {};
  predict_batch_ = {};
  const std::vector<TensorType> inputs = layer_->input_types();
  if (inputs.empty()) return absl::OkStatus();
  const absl::Status built = Build(inputs);
  // Some layers have to see data first (Normalization).
  return absl::IsFailedPrecondition(built) ? absl::OkStatus() : built;
}

absl::Status Model::Compile(CompileOptions options) {
  if (Strategy* const in_scope = StrategyInScope(); in_scope != nullptr) {
    return Compile(*in_scope, std::move(options));
  }
  if (own_strategy_ == nullptr) {
    ASSIGN_OR_RETURN(own_strategy_, DefaultStrategy::Create());
  }
  return Compile(*own_strategy_, std::move(options));
}

absl::Status Model::Build(const TensorType& input) {
  return Build(absl::MakeConstSpan(&input, 1));
}

absl::Status Model::Build(absl::Span<const TensorType> inputs) {
  RETURN_IF_ERROR(CheckCompiled());
  if (built_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Graph forward, TraceForward(layer_, inputs));

  for (const Weight& weight : weights()) {
    proto::VariableSpec spec = weight.spec();
    if (spec.initializer().seed() == 0) {
      spec.mutable_initializer()->set_seed(FoldIn(seed_, weight.name()));
    }
    RETURN_IF_ERROR(strategy_->variables().Create(spec));
  }
  built_ = true;
  return absl::OkStatus();
}

absl::Status Model::CheckCompiled() const {
  if (strategy_ != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the model is not compiled: call Compile() first");
}

absl::Status Model::CheckHasOptimizer() const {
  RETURN_IF_ERROR(CheckCompiled());
  if (options_.optimizer.rule_case() != proto::Optimizer::RULE_NOT_SET) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "the model was compiled without an optimizer");
}

absl::Status Model::Prepare(const Dataset& data) {
  RETURN_IF_ERROR(CheckCompiled());
  return BuildFor(data);
}

absl::Status Model::BuildFor(const Dataset& data) {
  RETURN_IF_ERROR(data.status());
  return BuildFor(data.element_types());
}

absl::Status Model::BuildFor(absl::Span<const TensorType> types) {
  if (types.size() < InputCount(*layer_)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has ", InputCount(*layer_),
        " inputs, the data's elements have ", types.size(), " components"));
  }
  return Build(types.subspan(0, InputCount(*layer_)));
}

absl::StatusOr<StepParts> Model::Parts(bool training,
                                       const ClassWeights& class_weight) const {
  const proto::Optimizer& optimizer = options_.optimizer;
  StepParts parts{
      .layer = layer_,
      .seed = seed_,
      .clipping = {.clipvalue = optimizer.clipvalue(),
                   .clipnorm = optimizer.clipnorm(),
                   .global_clipnorm = optimizer.global_clipnorm()},
      .custom_step = training ? options_.train_step : options_.test_step};
  if (parts.custom_step == nullptr) {
    ASSIGN_OR_RETURN(parts.outputs, CompileOutputs(*layer_, options_));
  }
  if (class_weight.empty()) return parts;
  if (parts.outputs.size() != 1) {
    return absl::InvalidArgumentError(
        parts.outputs.empty()
            ? "class_weight is of no use to a train step of one's own"
            : "class_weight is for models with one output; give sample weights "
              "instead");
  }
  parts.class_weights = class_weight;
  return parts;
}

absl::StatusOr<History> Model::Fit(const Dataset& data,
                                   const FitOptions& options) {
  RETURN_IF_ERROR(Prepare(data));
  RETURN_IF_ERROR(CheckHasOptimizer());
  stop_training_ = false;
  ASSIGN_OR_RETURN(FitOptions ordered, OptionsOfBatches(options));
  std::stable_sort(ordered.callbacks.begin(), ordered.callbacks.end(),
                   [](const Callback* a, const Callback* b) {
                     return a->turn() < b->turn();
                   });
  return FitRun(this, data, ordered).Run();
}

absl::StatusOr<Logs> Model::Evaluate(const Dataset& data,
                                     const EvaluateOptions& options) {
  if (options.batch_size.has_value()) {
    return OptionForArraysError("Evaluate", "batch_size",
                                "batch it with Batch()");
  }
  RETURN_IF_ERROR(Prepare(data));
  ASSIGN_OR_RETURN(std::unique_ptr<EvaluateRun> run,
                   EvaluateRun::Create(this, data, options));
  return run->Run();
}

absl::StatusOr<Tensor> Model::Predict(const Dataset& data) {
  ASSIGN_OR_RETURN(std::vector<Tensor> predictions, PredictAll(data));
  return std::move(predictions.front());
}

absl::StatusOr<std::vector<Tensor>> Model::PredictAll(const Dataset& data) {
  RETURN_IF_ERROR(CheckCompiled());
  RETURN_IF_ERROR(BuildFor(data));
  if (data.Cardinality() == Dataset::kInfinite) {
    return absl::InvalidArgumentError(
        "cannot predict for data that never ends; use Take()");
  }
  ASSIGN_OR_RETURN(const Graph step,
                   TracePredictStep(layer_, data.element_types()));
  ASSIGN_OR_RETURN(std::unique_ptr<StepLoop> loop,
                   strategy_->CreateLoop(step, data, LoopKind::kPredict));

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
    ASSIGN_OR_RETURN(Tensor whole, Concatenate(output));
    predictions.push_back(std::move(whole));
  }
  return predictions;
}

std::vector<Weight> Model::trainable_weights() const {
  return TrainableOf(weights());
}

absl::StatusOr<std::vector<Tensor>> Model::GetWeights() const {
  RETURN_IF_ERROR(CheckCompiled());
  std::vector<Tensor> values;
  for (const Weight& weight : weights()) {
    ASSIGN_OR_RETURN(Tensor value, strategy_->variables().Read(weight.name()));
    values.push_back(std::move(value));
  }
  return values;
}

absl::Status Model::SetWeights(absl::Span<const Tensor> values) {
  RETURN_IF_ERROR(CheckCompiled());
  const std::vector<Weight> all = weights();
  if (values.size() != all.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has ", all.size(), " weights, got ", values.size(),
        " values", built_ ? "" : "; it is not built yet"));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    RETURN_IF_ERROR(strategy_->variables().Assign(all[i].name(), values[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Model::iterations() const {
  RETURN_IF_ERROR(CheckCompiled());
  const std::vector<Weight> trainable = trainable_weights();
  if (!built_ || trainable.empty()) return 0;
  // Every step brings a gradient for each of them.
  return strategy_->variables().UpdateCount(trainable.front().name());
}

absl::StatusOr<double> Model::learning_rate() const {
  RETURN_IF_ERROR(CheckHasOptimizer());
  const proto::Optimizer& optimizer = options_.optimizer;
  if (const auto number = ConstantLearningRate(optimizer); number.has_value()) {
    return *number;
  }
  ASSIGN_OR_RETURN(const LearningRate schedule,
                   LearningRate::Create(optimizer.learning_rate_schedule()));
  ASSIGN_OR_RETURN(const int64_t step, iterations());
  return schedule.At(step);
}

absl::Status Model::SetLearningRate(double learning_rate) {
  RETURN_IF_ERROR(CheckHasOptimizer());
  if (!ConstantLearningRate(options_.optimizer).has_value()) {
    return absl::FailedPreconditionError(
        "the optimizer's learning rate is a schedule and cannot be set; give "
        "it a number to set it while training");
  }
  proto::Optimizer changed = options_.optimizer;
  SetConstantLearningRate(learning_rate, &changed);
  RETURN_IF_ERROR(strategy_->variables().SetOptimizer(changed));
  options_.optimizer = std::move(changed);
  return absl::OkStatus();
}

std::string Model::Summary() const { return SummarizeModel(*layer_); }

}  // namespace muster
