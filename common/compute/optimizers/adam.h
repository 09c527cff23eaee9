#ifndef COMMON_COMPUTE_OPTIMIZERS_ADAM_H_
#define COMMON_COMPUTE_OPTIMIZERS_ADAM_H_

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/optimizer_options.h"

namespace muster {
struct OptimizerKind;

// Adam, with learning rate r, gradient g and weight w, at update t = 1, 2, ...:
//   m += (g - m) * (1 - beta_1)
//   v += (g^2 - v) * (1 - beta_2)
//   w -= r * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(v) + epsilon)
// With amsgrad, v in the last line is replaced by its maximum over all updates.
//
// Slots, of the variable's shape and initialized with 0: "momentum" (m),
// "velocity" (v), and with amsgrad "velocity_hat" (the maximum of v). Source:
// Kingma and Ba, arXiv:1412.6980; amsgrad: Reddi et al., arXiv:1904.09237;
// https://keras.io/api/optimizers/adam/
struct AdamOptions {
  LearningRateOption learning_rate = 0.001;
  double beta_1 = 0.9;    // In [0, 1).
  double beta_2 = 0.999;  // In [0, 1).
  double epsilon = 1e-7;
  bool amsgrad = false;
};
Optimizer Adam(const AdamOptions& options = {},
               const OptimizerOptions& shared = {});

// Adam with decoupled weight decay, 0.004 by default. The slots are those of
// Adam. Source: Loshchilov and Hutter, arXiv:1711.05101;
// https://keras.io/api/optimizers/adamw/
Optimizer AdamW(const AdamOptions& options = {},
                const OptimizerOptions& shared = {});

extern const OptimizerKind kAdamKind;
extern const OptimizerKind kAdamWKind;

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_ADAM_H_
