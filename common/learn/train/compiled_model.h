#ifndef COMMON_LEARN_TRAIN_COMPILED_MODEL_H_
#define COMMON_LEARN_TRAIN_COMPILED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/lifetime.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/class_weights.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/layer_optimizers.h"
#include "common/learn/train/base/step_parts.h"

namespace muster {

// The layers of a Model, the strategy that stores their weights, and the
// options of training: the part of a Model that its loops and checkpoints use.
//
// Methods that Model also has are documented there. Not thread-safe.
class CompiledModel {
 public:
  explicit CompiledModel(LayerPtr layer);

  CompiledModel(const CompiledModel&) = delete;
  CompiledModel& operator=(const CompiledModel&) = delete;

  // `strategy` is borrowed.
  absl::Status Compile(Strategy& strategy, CompileOptions options);
  absl::Status Build(absl::Span<const TensorType> inputs);
  // Builds for elements of these types. The first components are the inputs.
  //   kInvalidArgument  there are fewer components than inputs
  absl::Status BuildFor(absl::Span<const TensorType> types);
  absl::Status BuildFor(const Dataset& data);

  //   kFailedPrecondition  not compiled; or the strategy has been destroyed, in
  //                        which case the error names the model and the
  //                        strategy
  absl::Status CheckCompiled() const;
  //   kFailedPrecondition  not compiled or not built; `what` is the operation
  //                        in the error
  absl::Status CheckBuilt(absl::string_view what) const;
  //   kFailedPrecondition  not compiled, or without an optimizer
  absl::Status CheckHasOptimizer() const;
  // Sets the optimizers of the weights that are trainable now. Called before
  // training, because layers may have been frozen or trained by another model
  // since the last call.
  //   kFailedPrecondition  not compiled, without an optimizer, or a weight has
  //                        been trained with another rule
  absl::Status UseOptimizer();

  // Returns the parts of a step of Fit() or of Evaluate().
  //   kInvalidArgument  losses, metrics or class weights do not fit the outputs
  absl::StatusOr<StepParts> Parts(bool training,
                                  const ClassWeights& class_weight = {}) const;

  absl::StatusOr<std::vector<Tensor>> GetWeights() const;
  absl::Status SetWeights(absl::Span<const Tensor> values);
  absl::Status ResetStates();
  // Updates of CompileOptions::optimizer.
  absl::StatusOr<int64_t> iterations() const;
  // The number of gradients: iterations() times the gradients per update, plus
  // those that have not been applied yet.
  absl::StatusOr<int64_t> gradient_count() const;
  absl::StatusOr<double> learning_rate() const;
  absl::Status SetLearningRate(double learning_rate);

  const LayerPtr& layer() const { return layer_; }
  // `model "sequential"`.
  std::string NameForMessages() const;
  std::vector<Weight> weights() const { return layer_->weights(); }
  // The name of the variable with the scale of the loss; empty if the optimizer
  // has none, or the model is not built.
  std::string loss_scale() const;
  // The types of the inputs that the model was built for; empty until then.
  const std::vector<TensorType>& input_types() const { return input_types_; }
  // Null until the model is compiled, and after the strategy has been
  // destroyed.
  Strategy* strategy() const { return strategy_.get(); }
  const CompileOptions& options() const { return options_; }
  // The optimizers of options().
  const ModelOptimizers& optimizers() const { return optimizers_; }
  // The seed of the options, or RandomSeed() at the time of Compile().
  uint64_t seed() const { return seed_; }

 private:
  absl::Status Create(const Weight& weight);
  // Creates the variable of the loss scale, if the optimizer has one and there
  // is none yet.
  absl::Status UseLossScale();
  absl::Status CreateLossScale();
  // Replaces the optimizers of the weights. If this fails, the weights keep the
  // previous ones.
  absl::Status ChangeOptimizers(const ModelOptimizers& optimizers,
                                Strategy& strategy);

  const LayerPtr layer_;
  Borrowed<Strategy> strategy_;
  CompileOptions options_;
  ModelOptimizers optimizers_;
  uint64_t seed_ = 0;
  bool built_ = false;
  // The names of the weights that the optimizers update.
  std::vector<std::string> optimized_;
  std::vector<TensorType> input_types_;
  std::string loss_scale_;
  // Owner identity of the loss scale variable; valid as long as the model
  // exists.
  const std::shared_ptr<const void> identity_ = std::make_shared<char>();
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_COMPILED_MODEL_H_
