#ifndef COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_OPTIONS_H_
#define COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_OPTIONS_H_

#include <optional>

namespace muster {

// Options that all optimizers share:
//
//   AdamW({.learning_rate = 3e-4}, {.weight_decay = 0.1, .clipnorm = 1})
//
// Equivalent to: the arguments of keras.optimizers.Optimizer.
struct OptimizerOptions {
  // Decoupled weight decay: each update first subtracts weight_decay * rate * w
  // from the weight w. Absent: Keras' default, 0.004 for AdamW and none for the
  // others.
  std::optional<double> weight_decay;

  // Gradient clipping; 0 is off. At most one may be set. See GradientClipping
  // (common/compute/ops/gradient_clipping.h).
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_OPTIONS_H_
