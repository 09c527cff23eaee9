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
  // from the weight w. If absent, Keras' default: 0.004 for AdamW and Muon, and
  // no decay for the others.
  std::optional<double> weight_decay;

  // Gradient clipping; 0 is off. At most one may be set. See GradientClipping
  // (common/compute/functions/gradient_clipping.h).
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;

  // If at least 2, each update applies the mean of this many gradients. Earlier
  // gradients of an update only change their sum, which is a slot of each
  // variable, "gradient_accumulator". `Model::iterations()` counts updates;
  // schedules count gradients. Clipping applies to the mean, but on parameter
  // servers to each gradient. 0 means off.
  int64_t gradient_accumulation_steps = 0;

  // Keeps a moving average of each trained variable in the slot "average",
  // which each gradient updates:
  //   average = ema_momentum * average + (1 - ema_momentum) * variable
  // Until the end of the first update the average equals the variable. Fit()
  // ends by assigning the averages to the variables.
  bool use_ema = false;
  double ema_momentum = 0.99;  // In [0, 1].
  // If positive, each variable is also set to its average after every this many
  // updates.
  int64_t ema_overwrite_frequency = 0;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_OPTIONS_H_
