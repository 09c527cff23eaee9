#ifndef COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_OPTIONS_H_
#define COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_OPTIONS_H_

#include <cstdint>
#include <optional>

namespace muster {

// Options that all optimizers share:
//
//   AdamW({.learning_rate = 3e-4}, {.weight_decay = 0.1, .clipnorm = 1})
//
// Equivalent to: the arguments of keras.optimizers.Optimizer.
struct OptimizerOptions {
  // Decoupled weight decay: each update first subtracts weight_decay * rate * w
  // from the weight w. Absent: Keras' default, 0.004 for AdamW and Muon, and
  // none for the others.
  std::optional<double> weight_decay;

  // Gradient clipping; 0 is off. At most one may be set. See GradientClipping
  // (common/compute/optimizers/gradient_clipping.h).
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;

  // If at least 2: each update applies the mean of so many gradients. The
  // gradients before the last change nothing but the sum, which is a slot of
  // each variable, "gradient_accumulator". `Model::iterations()` counts
  // updates; schedules count gradients. The mean is clipped, not the gradients,
  // but on parameter servers it is the other way round. 0: off.
  int64_t gradient_accumulation_steps = 0;

  // Keeps a moving average of each trained variable in the slot "average",
  // which each gradient updates:
  //   average = ema_momentum * average + (1 - ema_momentum) * variable
  // Until the end of the first update it is the variable. Fit() ends by
  // assigning the averages to the variables.
  bool use_ema = false;
  double ema_momentum = 0.99;  // In [0, 1].
  // If positive, each variable also becomes its average after so many updates.
  int64_t ema_overwrite_frequency = 0;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_OPTIONS_H_
