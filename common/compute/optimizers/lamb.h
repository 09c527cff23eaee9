#ifndef COMMON_COMPUTE_OPTIMIZERS_LAMB_H_
#define COMMON_COMPUTE_OPTIMIZERS_LAMB_H_

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/optimizer_options.h"

namespace muster {
struct OptimizerKind;

// LAMB, for large batches: Adam, whose update of each variable is scaled to the
// norm of the variable. With learning rate r, gradient g, weight w, and t, the
// number of the update, counted from 1:
//   m = m + (g - m) * (1 - beta_1)
//   v = v + (g^2 - v) * (1 - beta_2)
//   u = (m / (1 - beta_1^t)) / (sqrt(v / (1 - beta_2^t)) + epsilon)
//   w -= r * u * |w| / |u|
// The norms are those of the whole variable; where one is 0, the ratio is 1.
//
// Needs whole variables: parameter servers, which update parts of variables,
// refuse it.
//
// Slots: "momentum" (m) and "velocity" (v), of the variable's shape,
// initialized with 0. Source: You et al., arXiv:1904.00962;
// https://keras.io/api/optimizers/lamb/
struct LambOptions {
  LearningRateOption learning_rate = 0.001;
  double beta_1 = 0.9;    // In [0, 1).
  double beta_2 = 0.999;  // In [0, 1).
  double epsilon = 1e-7;  // At least 0.
};
Optimizer Lamb(const LambOptions& options = {},
               const OptimizerOptions& shared = {});

extern const OptimizerKind kLambKind;

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_LAMB_H_
