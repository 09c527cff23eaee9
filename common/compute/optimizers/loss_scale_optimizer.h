#ifndef COMMON_COMPUTE_OPTIMIZERS_LOSS_SCALE_OPTIMIZER_H_
#define COMMON_COMPUTE_OPTIMIZERS_LOSS_SCALE_OPTIMIZER_H_

#include <cstdint>

#include "common/compute/optimizers/optimizer.h"

namespace muster {

struct LossScaleOptions {
  // Rather too high: a scale falls much faster than it rises.
  double initial_scale = 32768;
  // So many steps in a row with finite gradients double the scale.
  int64_t dynamic_growth_steps = 2000;
};

// Returns `inner_optimizer` with dynamic loss scaling: gradients are those of
// the loss times a scale, so that small ones do not become zero in float16, and
// are divided by it before they are clipped, accumulated or applied. A step
// whose gradients are not all finite halves the scale and changes no weight, no
// slot and no count of the inner optimizer.
//
// Model::Compile() does this for models of kMixedFloat16Policy
// (CompileOptions::auto_scale_loss).
//
// Equivalent to: keras.optimizers.LossScaleOptimizer.
Optimizer LossScaleOptimizer(const Optimizer& inner_optimizer,
                             const LossScaleOptions& options = {});

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_LOSS_SCALE_OPTIMIZER_H_
