#include "common/learn/train/compiled_model.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph.h"
#include "common/compute/ops/variable_ops.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/loss_scale.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/variable_name.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/layer.h"
#include "common/learn/strategy/replica/strategy_scope.h"
#include "common/learn/strategy/variable_owners.h"
#include "common/learn/train/base/random_seed.h"
#include "common/learn/train/base/step_forward.h"
#include "common/learn/train/base/step_graphs.h"
#include "common/learn/train/compiled_outputs.h"
#include "common/learn/train/keras/keras_names.h"
#include "proto/optimizer.pb.h"
#include "proto/variable.pb.h"

namespace muster {

namespace {

constexpr char kLossScaleName[] = "loss_scale";

// Applies auto_scale_loss, as keras.Model.compile() does.
void ScaleLoss(const Layer& layer, CompileOptions* options) {
  const bool scales = options->auto_scale_loss &&
                      layer.dtype_policy() == kMixedFloat16Policy &&
                      options->optimizer.has_rule() &&
                      !options->optimizer.message().has_loss_scale();
  if (scales) options->optimizer = LossScaleOptimizer(options->optimizer);
}

// Replicas get parts of a batch, and asynchronous workers get different
// batches. In neither case do the examples of a batch continue those of the
// batch before.
absl::Status CheckStates(const std::vector<Weight>& states,
                         const Strategy& strategy) {
  const bool has_one_replica =
      strategy.num_replicas_in_sync() == 1 && !strategy.draws_from_copies();
  if (states.empty() || has_one_replica) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      states.front().name(),
      " is carried from batch to batch (stateful), which needs one replica "
      "that "
      "gets all batches in their order; strategy \"",
      std::string(strategy.name()), "\" has ",
      strategy.draws_from_copies()
          ? "workers with batches of their own"
          : absl::StrCat(strategy.num_replicas_in_sync(), " replicas"),
      ". Train in one process, or without stateful"));
}

}  // namespace

CompiledModel::CompiledModel(LayerPtr layer) : layer_(std::move(layer)) {
  // Weights of a model with layers are named after the layers: "dense/kernel".
  // If the model is a single layer, the layer's name is the path.
  const bool has_layers = !layer_->layers().empty();
  layer_->SetPath(has_layers               ? ""
                  : layer_->name().empty() ? ToSnakeCase(layer_->kind())
                                           : layer_->name());
  // Traces the layers so that a summary has shapes. Build() reports the errors
  // that are ignored here.
  const std::vector<TensorType> inputs = layer_->input_types();
  if (!inputs.empty()) TraceForward(layer_, inputs).IgnoreError();
}

absl::Status CompiledModel::Compile(Strategy& strategy,
                                    CompileOptions options) {
  if (built_) {
    RETURN_IF_ERROR(CheckCompiled());
    if (strategy_.get() != &strategy) {
      return absl::FailedPreconditionError(
          absl::StrCat("the model's weights live with ", strategy_.name(),
                       "; they cannot move to another"));
    }
  }
  ASSIGN_OR_RETURN(Strategy* const in_scope,
                   StrategyInScope(NameForMessages()));
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
  RETURN_IF_ERROR(LookUpNames(&options));
  ScaleLoss(*layer_, &options);
  ModelOptimizers optimizers(options.optimizer, options.layer_optimizers);
  RETURN_IF_ERROR(optimizers.Check());
  if (built_) RETURN_IF_ERROR(optimizers.CheckMatch(weights()));
  if (options.optimizer.has_rule()) {
    RETURN_IF_ERROR(ChangeOptimizers(optimizers, strategy));
  }
  strategy_ = strategy.Borrow();
  optimizers_ = std::move(optimizers);
  options_ = std::move(options);
  seed_ = options_.seed.value_or(RandomSeed());
  const std::vector<TensorType> inputs = layer_->input_types();
  if (inputs.empty()) return absl::OkStatus();
  const absl::Status built = Build(inputs);
  // Some layers must be adapted to data first (Normalization).
  return absl::IsFailedPrecondition(built) ? absl::OkStatus() : built;
}

absl::Status CompiledModel::ChangeOptimizers(const ModelOptimizers& optimizers,
                                             Strategy& strategy) {
  absl::Status status = optimizers.SetIn(strategy.variables(), optimized_);
  if (!status.ok() && options_.optimizer.has_rule()) {
    // Restores the optimizers. Only the first error is reported.
    optimizers_.SetIn(strategy.variables(), optimized_).IgnoreError();
  }
  return status;
}

absl::Status CompiledModel::Build(absl::Span<const TensorType> inputs) {
  RETURN_IF_ERROR(CheckCompiled());
  if (built_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Graph forward, TraceForward(layer_, inputs));
  RETURN_IF_ERROR(optimizers_.CheckMatch(weights()));
  RETURN_IF_ERROR(CheckStates(layer_->states(), *strategy_));
  // Checks names here, rather than when the weights are saved after training.
  for (const Weight& weight : weights()) {
    RETURN_IF_ERROR(CheckVariableName(weight.name()));
  }

  for (const Weight& weight : weights()) RETURN_IF_ERROR(Create(weight));
  for (const Weight& state : layer_->states()) RETURN_IF_ERROR(Create(state));
  input_types_.assign(inputs.begin(), inputs.end());
  built_ = true;
  return options_.optimizer.has_rule() ? UseOptimizer() : absl::OkStatus();
}

absl::Status CompiledModel::Create(const Weight& weight) {
  proto::VariableSpec spec = weight.spec();
  if (spec.initializer().seed() == 0) {
    spec.mutable_initializer()->set_seed(FoldIn(seed_, weight.name()));
  }
  ASSIGN_OR_RETURN(const VariableOwners::Claim claim,
                   strategy()->owners().Take(weight.name(), weight.identity()));
  RETURN_IF_ERROR(strategy()->variables().Create(spec));
  if (claim == VariableOwners::Claim::kInherited) {
    RETURN_IF_ERROR(strategy()->variables().StartOver(spec));
  }
  // Weights that this model shares with another model keep their optimizer
  // unless this model trains them.
  if (claim != VariableOwners::Claim::kRepeated) {
    optimized_.push_back(weight.name());
  }
  return absl::OkStatus();
}

absl::Status CompiledModel::UseOptimizer() {
  RETURN_IF_ERROR(CheckHasOptimizer());
  for (const Weight& weight : TrainableOf(weights())) {
    if (std::find(optimized_.begin(), optimized_.end(), weight.name()) ==
        optimized_.end()) {
      optimized_.push_back(weight.name());
    }
  }
  RETURN_IF_ERROR(optimizers_.SetIn(strategy()->variables(), optimized_));
  return UseLossScale();
}

std::string CompiledModel::loss_scale() const {
  return options_.optimizer.message().has_loss_scale() ? loss_scale_ : "";
}

absl::Status CompiledModel::UseLossScale() {
  const proto::Optimizer& optimizer = options_.optimizer.message();
  if (!optimizer.has_loss_scale()) return absl::OkStatus();
  if (loss_scale_.empty()) RETURN_IF_ERROR(CreateLossScale());
  return strategy()->variables().SetOptimizerOf(
      {loss_scale_}, OptimizerOfLossScale(optimizer));
}

absl::Status CompiledModel::CreateLossScale() {
  ASSIGN_OR_RETURN(
      const proto::Optimizer::LossScale complete,
      CompleteLossScale(options_.optimizer.message().loss_scale()));
  proto::VariableSpec spec;
  spec.set_name(kLossScaleName);
  spec.set_dtype(proto::DT_FLOAT);
  spec.mutable_shape();
  spec.mutable_initializer()->mutable_constant()->set_value(
      complete.initial_scale());
  spec.set_is_optimizer_state(true);
  // Each model has its own scale. Names are consistent because all processes
  // compile models in the same order.
  absl::StatusOr<VariableOwners::Claim> claim =
      strategy()->owners().Take(spec.name(), identity_);
  for (int i = 1; absl::IsAlreadyExists(claim.status()); ++i) {
    spec.set_name(absl::StrCat(kLossScaleName, "_", i));
    claim = strategy()->owners().Take(spec.name(), identity_);
  }
  RETURN_IF_ERROR(claim.status());
  RETURN_IF_ERROR(strategy()->variables().Create(spec));
  if (*claim == VariableOwners::Claim::kInherited) {
    RETURN_IF_ERROR(strategy()->variables().StartOver(spec));
  }
  loss_scale_ = spec.name();
  return absl::OkStatus();
}

std::string CompiledModel::NameForMessages() const {
  return absl::StrCat(
      "model \"",
      layer_->name().empty() ? ToSnakeCase(layer_->kind()) : layer_->name(),
      "\"");
}

absl::Status CompiledModel::CheckCompiled() const {
  RETURN_IF_ERROR(strategy_.Check(
      NameForMessages(),
      "keep it at least as long, or compile with a std::shared_ptr of it, "
      "which the model keeps"));
  if (strategy() != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the model is not compiled: call Compile() first");
}

absl::Status CompiledModel::CheckBuilt(absl::string_view what) const {
  RETURN_IF_ERROR(CheckCompiled());
  if (built_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      what, ": the model has no weights yet; Build() it, or give it data"));
}

absl::Status CompiledModel::CheckHasOptimizer() const {
  RETURN_IF_ERROR(CheckCompiled());
  if (options_.optimizer.has_rule()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "the model was compiled without an optimizer");
}

absl::Status CompiledModel::BuildFor(const Dataset& data) {
  RETURN_IF_ERROR(CheckCompiled());
  RETURN_IF_ERROR(data.status());
  return BuildFor(data.element_types());
}

absl::Status CompiledModel::BuildFor(absl::Span<const TensorType> types) {
  RETURN_IF_ERROR(CheckCompiled());
  if (types.size() < InputCount(*layer_)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has ", InputCount(*layer_),
        " inputs, the data's elements have ", types.size(), " components"));
  }
  return Build(types.subspan(0, InputCount(*layer_)));
}

absl::StatusOr<StepParts> CompiledModel::Parts(
    bool training, const ClassWeights& class_weight) const {
  StepParts parts{
      .layer = layer_,
      .seed = seed_,
      .clipping_of = optimizers_.clipping(),
      .custom_step = training ? options_.train_step : options_.test_step};
  if (parts.custom_step == nullptr) {
    ASSIGN_OR_RETURN(parts.outputs, CompileOutputs(*layer_, options_));
  }
  if (training && !loss_scale().empty()) {
    parts.loss_scale = VariableHandle{loss_scale(), {DType::kFloat32, {}}};
  }
  if (class_weight.empty()) return parts;
  if (parts.outputs.size() != 1) {
    return absl::InvalidArgumentError(
        parts.outputs.empty()
            ? "class_weight has no effect on a custom train step"
            : "class_weight is for models with one output; give sample weights "
              "instead");
  }
  parts.class_weights = class_weight;
  return parts;
}

absl::StatusOr<std::vector<Tensor>> CompiledModel::GetWeights() const {
  RETURN_IF_ERROR(CheckCompiled());
  std::vector<Tensor> values;
  for (const Weight& weight : weights()) {
    ASSIGN_OR_RETURN(Tensor value, strategy()->variables().Read(weight.name()));
    values.push_back(std::move(value));
  }
  return values;
}

absl::Status CompiledModel::SetWeights(absl::Span<const Tensor> values) {
  RETURN_IF_ERROR(CheckCompiled());
  const std::vector<Weight> all = weights();
  if (values.size() != all.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has ", all.size(), " weights, got ", values.size(),
        " values", built_ ? "" : "; it is not built yet"));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    RETURN_IF_ERROR(strategy()->variables().Assign(all[i].name(), values[i]));
  }
  return absl::OkStatus();
}

absl::Status CompiledModel::ResetStates() {
  RETURN_IF_ERROR(CheckBuilt("resetting states"));
  for (const Weight& state : layer_->states()) {
    const TensorType& type = state.handle().type;
    RETURN_IF_ERROR(strategy()->variables().Assign(
        state.name(), Tensor::Zeros(type.dtype, type.shape)));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CompiledModel::iterations() const {
  ASSIGN_OR_RETURN(const int64_t count, gradient_count());
  return count / GradientsPerUpdate(options_.optimizer.message());
}

absl::StatusOr<int64_t> CompiledModel::gradient_count() const {
  RETURN_IF_ERROR(CheckCompiled());
  if (!built_) return 0;
  // Not every step has a gradient for every weight. The weight with the highest
  // count has taken part in most steps.
  std::vector<std::string> names;
  for (const Weight& weight : weights()) names.push_back(weight.name());
  ASSIGN_OR_RETURN(const std::vector<int64_t> counts,
                   strategy()->variables().UpdateCounts(names));
  const auto most = std::max_element(counts.begin(), counts.end());
  return most == counts.end() ? 0 : *most;
}

absl::StatusOr<double> CompiledModel::learning_rate() const {
  RETURN_IF_ERROR(CheckHasOptimizer());
  const proto::Optimizer& optimizer = options_.optimizer.message();
  if (const auto number = ConstantLearningRate(optimizer); number.has_value()) {
    return *number;
  }
  ASSIGN_OR_RETURN(const LearningRate schedule,
                   LearningRate::Create(optimizer.learning_rate_schedule()));
  ASSIGN_OR_RETURN(const int64_t step, gradient_count());
  return schedule.At(step);
}

absl::Status CompiledModel::SetLearningRate(double learning_rate) {
  RETURN_IF_ERROR(CheckHasOptimizer());
  if (!ConstantLearningRate(options_.optimizer.message()).has_value()) {
    return absl::FailedPreconditionError(
        "the optimizer's learning rate is a schedule and cannot be set; give "
        "it a number to set it while training");
  }
  proto::Optimizer changed = options_.optimizer.message();
  SetConstantLearningRate(learning_rate, &changed);
  ModelOptimizers optimizers(changed, options_.layer_optimizers);
  RETURN_IF_ERROR(ChangeOptimizers(optimizers, *strategy()));
  optimizers_ = std::move(optimizers);
  options_.optimizer = std::move(changed);
  return absl::OkStatus();
}

}  // namespace muster
