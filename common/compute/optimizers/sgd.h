#ifndef COMMON_COMPUTE_OPTIMIZERS_SGD_H_
#define COMMON_COMPUTE_OPTIMIZERS_SGD_H_

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/optimizer_options.h"

namespace muster {
struct OptimizerKind;

// Stochastic gradient descent, with learning rate r, gradient g and weight w:
//   w -= r * g
// With momentum:
//   m = momentum * m - r * g
//   w += m
// With Nesterov momentum, the last line is:
//   w += momentum * m - r * g
//
// Slots: "momentum" (m), of the variable's shape, initialized with 0, if
// momentum is not 0. Source: https://keras.io/api/optimizers/sgd/
struct SgdOptions {
  LearningRateOption learning_rate = 0.01;
  double momentum = 0.0;  // In [0, 1].
  bool nesterov = false;
};
Optimizer Sgd(const SgdOptions& options = {},
              const OptimizerOptions& shared = {});

extern const OptimizerKind kSgdKind;

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_SGD_H_
