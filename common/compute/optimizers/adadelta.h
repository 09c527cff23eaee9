#ifndef COMMON_COMPUTE_OPTIMIZERS_ADADELTA_H_
#define COMMON_COMPUTE_OPTIMIZERS_ADADELTA_H_

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/optimizer_options.h"

namespace muster {
struct OptimizerKind;

// Adadelta scales each step by the size of the steps before it. With learning
// rate r, gradient g and weight w:
//   a = rho * a + (1 - rho) * g^2
//   d = -g * sqrt(b + epsilon) / sqrt(a + epsilon)
//   b = rho * b + (1 - rho) * d^2
//   w += r * d
// The paper has r = 1.
//
// Slots, of the variable's shape and initialized with 0: "accumulated_grad" (a)
// and "accumulated_delta_var" (b). Source: Zeiler, arXiv:1212.5701;
// https://keras.io/api/optimizers/adadelta/
struct AdadeltaOptions {
  LearningRateOption learning_rate = 0.001;
  double rho = 0.95;  // In [0, 1].
  double epsilon = 1e-7;
};
Optimizer Adadelta(const AdadeltaOptions& options = {},
                   const OptimizerOptions& shared = {});

extern const OptimizerKind kAdadeltaKind;

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_ADADELTA_H_
