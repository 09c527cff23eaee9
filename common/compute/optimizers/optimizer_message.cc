#include "common/compute/optimizers/optimizer_message.h"

#include "proto/optimizer.pb.h"

namespace muster {

proto::Optimizer WithOptions(const OptimizerOptions& options) {
  proto::Optimizer optimizer;
  if (options.weight_decay.has_value()) {
    optimizer.set_weight_decay(*options.weight_decay);
  }
  if (options.clipnorm != 0) optimizer.set_clipnorm(options.clipnorm);
  if (options.clipvalue != 0) optimizer.set_clipvalue(options.clipvalue);
  if (options.global_clipnorm != 0) {
    optimizer.set_global_clipnorm(options.global_clipnorm);
  }
  if (options.gradient_accumulation_steps != 0) {
    optimizer.set_gradient_accumulation_steps(
        options.gradient_accumulation_steps);
  }
  if (options.use_ema) optimizer.set_use_ema(true);
  // These fields are set even without use_ema, because Keras keeps them in its
  // config.
  const OptimizerOptions defaults;
  if (options.ema_momentum != defaults.ema_momentum) {
    optimizer.set_ema_momentum(options.ema_momentum);
  }
  if (options.ema_overwrite_frequency != 0) {
    optimizer.set_ema_overwrite_frequency(options.ema_overwrite_frequency);
  }
  return optimizer;
}

void SetSchedule(const LearningRateSchedule& schedule,
                 proto::Optimizer* optimizer) {
  *optimizer->mutable_learning_rate_schedule() = schedule.message();
}

}  // namespace muster
