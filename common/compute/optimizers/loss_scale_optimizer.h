#ifndef COMMON_COMPUTE_OPTIMIZERS_LOSS_SCALE_OPTIMIZER_H_
#define COMMON_COMPUTE_OPTIMIZERS_LOSS_SCALE_OPTIMIZER_H_

#include <cstdint>

#include "common/compute/optimizers/optimizer.h"

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

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_LOSS_SCALE_OPTIMIZER_H_
