#ifndef COMMON_COMPUTE_OPTIMIZERS_LOSS_SCALE_H_
#define COMMON_COMPUTE_OPTIMIZERS_LOSS_SCALE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/update_rule.h"

namespace muster {

struct LossScaleOptions {
  // Choose it too high rather than too low: a scale falls much faster than it
  // rises.
  double initial_scale = 32768;
  // Number of consecutive steps with finite gradients after which the scale
  // doubles.
  int64_t dynamic_growth_steps = 2000;
};

// Returns `inner_optimizer` with dynamic loss scaling: the loss is multiplied
// by a scale, so that small gradients do not become zero in float16. Gradients
// are divided by the scale before they are clipped, accumulated or applied. A
// step whose gradients are not all finite halves the scale and leaves weights,
// slots and counts of the inner optimizer unchanged.
//
// Model::Compile() does this for models of kMixedFloat16Policy
// (CompileOptions::auto_scale_loss).
//
// Equivalent to: keras.optimizers.LossScaleOptimizer.
Optimizer LossScaleOptimizer(const Optimizer& inner_optimizer,
                             const LossScaleOptions& options = {});

namespace proto {
class Optimizer;
class Optimizer_LossScale;
}  // namespace proto

// The rule of the variable that holds the scale of a loss, a scalar. Its
// gradient encodes the outcome of a step: the scale with which the step was
// computed if all gradients were finite, and otherwise the negative of that
// scale. After `dynamic_growth_steps` finite steps the scale doubles. After a
// step with a gradient that is not finite, it becomes half of that step's
// scale. It stays finite and above 0; Keras has no such bounds.
//
// Slots: "step_counter", the number of finite steps since the last change.
// Source: keras.optimizers.LossScaleOptimizer of Keras 3; LossScaleUpdate
// (common/compute/functions/update.h).
inline constexpr char kLossScaleRule[] = "loss_scale";
inline constexpr char kLossScaleCounterSlot[] = "step_counter";

// Returns `scale` with Keras' defaults for absent fields.
//   kInvalidArgument  initial_scale is not finite and above 0, or
//                     dynamic_growth_steps is below 1
absl::StatusOr<proto::Optimizer_LossScale> CompleteLossScale(
    const proto::Optimizer_LossScale& scale);

//   as CompleteLossScale()
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeLossScaleRule(
    const proto::Optimizer_LossScale& scale);

// Returns the optimizer for the variable that holds the scale of `optimizer`,
// for VariableStore::SetOptimizerOf(). Requires loss_scale.
Optimizer OptimizerOfLossScale(const proto::Optimizer& optimizer);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_LOSS_SCALE_H_
