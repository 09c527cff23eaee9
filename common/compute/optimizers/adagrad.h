#ifndef COMMON_COMPUTE_OPTIMIZERS_ADAGRAD_H_
#define COMMON_COMPUTE_OPTIMIZERS_ADAGRAD_H_

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/optimizer_options.h"

namespace muster {
struct OptimizerKind;

// Adagrad, with learning rate r, gradient g and weight w:
//   a += g^2
//   w -= r * g / sqrt(a + epsilon)
//
// Slots: "accumulator" (a), of the variable's shape, initialized with
// initial_accumulator_value. Source: Duchi, Hazan and Singer, JMLR 12 (2011),
// 2121-2159; https://keras.io/api/optimizers/adagrad/
struct AdagradOptions {
  LearningRateOption learning_rate = 0.001;
  double initial_accumulator_value = 0.1;  // At least 0.
  double epsilon = 1e-7;
};
Optimizer Adagrad(const AdagradOptions& options = {},
                  const OptimizerOptions& shared = {});

extern const OptimizerKind kAdagradKind;

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_ADAGRAD_H_
