#ifndef COMMON_COMPUTE_OPTIMIZERS_ADAMAX_H_
#define COMMON_COMPUTE_OPTIMIZERS_ADAMAX_H_

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/optimizer_options.h"

namespace muster {
struct OptimizerKind;

// Adamax, the variant of Adam with the infinity norm. With learning rate r,
// gradient g and weight w, at update t = 1, 2, ...:
//   m += (g - m) * (1 - beta_1)
//   u = max(beta_2 * u, |g|)
//   w -= r * m / ((1 - beta_1^t) * (u + epsilon))
//
// Slots, of the variable's shape and initialized with 0: "momentum" (m) and
// "norm" (u). Source: Kingma and Ba, arXiv:1412.6980, section 7;
// https://keras.io/api/optimizers/adamax/
struct AdamaxOptions {
  LearningRateOption learning_rate = 0.001;
  double beta_1 = 0.9;    // In [0, 1).
  double beta_2 = 0.999;  // In [0, 1].
  double epsilon = 1e-7;
};
Optimizer Adamax(const AdamaxOptions& options = {},
                 const OptimizerOptions& shared = {});

extern const OptimizerKind kAdamaxKind;

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_ADAMAX_H_
