#include "common/learn/train/model.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/functional.h"
#include "common/learn/strategy/replica/strategy_scope.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/train/array_batches.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/batch_steps.h"
#include "common/learn/train/compiled_model.h"
#include "common/learn/train/evaluate_run.h"
#include "common/learn/train/fit_run.h"
#include "common/learn/train/model_persistence.h"
#include "common/learn/train/model_summary.h"
#include "common/learn/train/named_inputs.h"
#include "common/learn/train/training_control.h"

namespace muster {

Model::Model(LayerPtr layer)
    : compiled_(std::make_unique<CompiledModel>(std::move(layer))),
      control_(std::make_unique<TrainingControl>()),
      batch_steps_(std::make_unique<BatchSteps>(compiled_.get())),
      persistence_(std::make_unique<ModelPersistence>(compiled_.get(),
                                                      control_.get())) {}

Model::Model(LayerOutputs inputs, LayerOutputs outputs,
             const FunctionalOptions& options)
    : Model(Functional(std::move(inputs), std::move(outputs), options)) {}

Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

absl::Status Model::Compile(Strategy& strategy, CompileOptions options) {
  RETURN_IF_ERROR(compiled_->Compile(strategy, std::move(options)));
  batch_steps_->Reset();
  return absl::OkStatus();
}

absl::Status Model::Compile(std::shared_ptr<Strategy> strategy,
                            CompileOptions options) {
  if (strategy == nullptr) {
    return absl::InvalidArgumentError("Compile: the strategy is null");
  }
  RETURN_IF_ERROR(Compile(*strategy, std::move(options)));
  own_strategy_ = std::move(strategy);
  return absl::OkStatus();
}

absl::Status Model::Compile(CompileOptions options) {
  ASSIGN_OR_RETURN(Strategy* const in_scope,
                   StrategyInScope(compiled_->NameForMessages()));
  if (in_scope != nullptr) return Compile(*in_scope, std::move(options));
  if (own_strategy_ == nullptr) {
    ASSIGN_OR_RETURN(own_strategy_, DefaultStrategy::Create());
  }
  return Compile(*own_strategy_, std::move(options));
}

absl::Status Model::Build(const TensorType& input) {
  return Build(absl::MakeConstSpan(&input, 1));
}

absl::Status Model::Build(absl::Span<const TensorType> inputs) {
  return compiled_->Build(inputs);
}

absl::StatusOr<History> Model::Fit(const Dataset& data,
                                   const FitOptions& options) {
  ASSIGN_OR_RETURN(const Dataset ordered_data, InOrderOfModel(*layer(), data));
  RETURN_IF_ERROR(compiled_->BuildFor(ordered_data));
  RETURN_IF_ERROR(compiled_->UseOptimizer());
  control_->stops = false;
  ASSIGN_OR_RETURN(FitOptions ordered, OptionsOfBatches(options));
  std::stable_sort(ordered.callbacks.begin(), ordered.callbacks.end(),
                   [](const Callback* a, const Callback* b) {
                     return a->turn() < b->turn();
                   });
  return FitRun(this, *compiled_, control_.get(), ordered_data, ordered).Run();
}

absl::StatusOr<Logs> Model::Evaluate(const Dataset& data,
                                     const EvaluateOptions& options) {
  if (options.batch_size.has_value()) {
    return OptionForArraysError("Evaluate", "batch_size",
                                "batch it with Batch()");
  }
  ASSIGN_OR_RETURN(const Dataset ordered, InOrderOfModel(*layer(), data));
  RETURN_IF_ERROR(compiled_->BuildFor(ordered));
  ASSIGN_OR_RETURN(std::unique_ptr<EvaluateRun> run,
                   EvaluateRun::Create(this, *compiled_, ordered, options));
  return run->Run();
}

absl::StatusOr<Tensor> Model::Predict(const Dataset& data) {
  ASSIGN_OR_RETURN(std::vector<Tensor> predictions, PredictAll(data));
  return std::move(predictions.front());
}

absl::StatusOr<std::vector<Tensor>> Model::PredictAll(const Dataset& data) {
  ASSIGN_OR_RETURN(const Dataset ordered, InOrderOfModel(*layer(), data));
  RETURN_IF_ERROR(compiled_->BuildFor(ordered));
  return muster::PredictAll(*compiled_, ordered);
}

absl::StatusOr<Logs> Model::TrainOnBatch(const Element& batch,
                                         const ClassWeights& class_weight) {
  return batch_steps_->Train(batch, class_weight);
}

absl::StatusOr<Logs> Model::TestOnBatch(const Element& batch) {
  return batch_steps_->Test(batch);
}

absl::StatusOr<std::vector<Tensor>> Model::PredictOnBatch(
    const Element& inputs) {
  return batch_steps_->Predict(inputs);
}

Value Model::operator()(Value x, const CallContext& context) {
  return (*layer())(x, context);
}

LayerOutput Model::operator()(LayerOutputs inputs) const {
  return layer()(std::move(inputs));
}

LayerOutput Model::operator()(LayerOutputs inputs,
                              const CallContext& context) const {
  return layer()(std::move(inputs), context);
}

std::vector<Weight> Model::weights() const { return compiled_->weights(); }

std::vector<Weight> Model::trainable_weights() const {
  return TrainableOf(weights());
}

absl::StatusOr<std::vector<Tensor>> Model::GetWeights() const {
  return compiled_->GetWeights();
}

absl::Status Model::SetWeights(absl::Span<const Tensor> values) {
  return compiled_->SetWeights(values);
}

absl::Status Model::ResetStates() { return compiled_->ResetStates(); }

absl::Status Model::Save(const std::string& path) {
  return persistence_->Save(path);
}

absl::Status Model::Export(const std::string& path,
                           const ExportOptions& options) {
  return persistence_->Export(path, options);
}

absl::Status Model::RestoreFromKeras(const std::string& path,
                                     const Hdf5Reader& weights,
                                     bool values_only) {
  return persistence_->RestoreFromKeras(path, weights, values_only);
}

absl::Status Model::SaveCheckpoint(const std::string& prefix) {
  return persistence_->SaveCheckpoint(prefix);
}

absl::StatusOr<TrainingState> Model::RestoreCheckpoint(
    const std::string& path) {
  return persistence_->RestoreCheckpoint(path);
}

absl::Status Model::SaveWeights(const std::string& prefix) {
  return persistence_->SaveWeights(prefix);
}

absl::Status Model::LoadWeights(const std::string& path,
                                const LoadWeightsOptions& options) {
  return persistence_->LoadWeights(path, options);
}

absl::StatusOr<std::string> Model::FindCheckpoint(
    const std::string& path, const std::string& checkpoint_name) {
  return persistence_->FindCheckpoint(path, checkpoint_name);
}

absl::StatusOr<std::unique_ptr<TrainingSnapshot>> Model::TakeSnapshot() {
  return persistence_->TakeSnapshot();
}

absl::StatusOr<std::unique_ptr<TrainingSnapshot>> Model::TakeWeightsSnapshot() {
  return persistence_->TakeWeightsSnapshot();
}

TrainingProgress* Model::progress() const { return control_->progress; }

void Model::StopTraining() { control_->stops = true; }

std::string Model::Summary() const { return SummarizeModel(*layer()); }

absl::StatusOr<int64_t> Model::iterations() const {
  return compiled_->iterations();
}

bool Model::uses_ema() const { return compiled_->optimizers().use_ema(); }

absl::StatusOr<double> Model::learning_rate() const {
  return compiled_->learning_rate();
}

absl::Status Model::SetLearningRate(double learning_rate) {
  return compiled_->SetLearningRate(learning_rate);
}

const LayerPtr& Model::layer() const { return compiled_->layer(); }

Borrowed<Model> Model::Borrow() {
  return {this, lifetime_, compiled_->NameForMessages()};
}

Strategy* Model::strategy() const { return compiled_->strategy(); }

// ---- Examples in memory become datasets.

absl::StatusOr<History> Model::Fit(const Element& arrays,
                                   const FitOptions& options) {
  // A call that is repeated after an error uses the same order of examples, so
  // that callbacks can resume in it.
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
