#ifndef COMMON_COMPUTE_OPTIMIZERS_LION_H_
#define COMMON_COMPUTE_OPTIMIZERS_LION_H_

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/optimizer_options.h"

namespace muster {
struct OptimizerKind;

// Lion moves every weight by the same distance, in the direction of the sign of
// an interpolated momentum. With learning rate r, gradient g and weight w:
//   w -= r * sign(beta_1 * m + (1 - beta_1) * g), where sign(0) = 0
//   m = beta_2 * m + (1 - beta_2) * g
// Compared with Adam, the learning rate is usually 3 to 10 times smaller and
// the weight decay 3 to 10 times larger.
//
// Slots: "momentum" (m), of the variable's shape, initialized with 0. Source:
// Chen et al., arXiv:2302.06675; https://keras.io/api/optimizers/lion/
struct LionOptions {
  LearningRateOption learning_rate = 0.001;
  double beta_1 = 0.9;   // In (0, 1].
  double beta_2 = 0.99;  // In [0, 1].
};
Optimizer Lion(const LionOptions& options = {},
               const OptimizerOptions& shared = {});

extern const OptimizerKind kLionKind;

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_LION_H_
