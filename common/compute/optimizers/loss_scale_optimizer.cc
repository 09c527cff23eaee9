#include "common/compute/optimizers/loss_scale_optimizer.h"

#include "common/compute/optimizers/optimizer.h"
#include "proto/optimizer.pb.h"

namespace muster {

Optimizer LossScaleOptimizer(const Optimizer& inner_optimizer,
                             const LossScaleOptions& options) {
  proto::Optimizer optimizer = inner_optimizer.message();
  proto::Optimizer::LossScale* const scale = optimizer.mutable_loss_scale();
  scale->set_initial_scale(options.initial_scale);
  scale->set_dynamic_growth_steps(options.dynamic_growth_steps);
  return optimizer;
}

}  // namespace muster
