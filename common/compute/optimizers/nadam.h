#ifndef COMMON_COMPUTE_OPTIMIZERS_NADAM_H_
#define COMMON_COMPUTE_OPTIMIZERS_NADAM_H_

#include <cstdint>

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/optimizer_options.h"

namespace muster {
struct OptimizerKind;

// Adam with Nesterov momentum. With learning rate r, gradient g and weight w,
// at update t = 1, 2, ...:
//   u(t) = beta_1 * (1 - 0.96^t / 2),  U(t) = u(1) * ... * u(t)
//   m += (g - m) * (1 - beta_1)
//   v += (g^2 - v) * (1 - beta_2)
//   m' = u(t + 1) * m / (1 - U(t + 1)) + (1 - u(t)) * g / (1 - U(t))
//   w -= r * m' / (sqrt(v / (1 - beta_2^t)) + epsilon)
//
// Slots, of the variable's shape and initialized with 0: "momentum" (m) and
// "velocity" (v). U(t) is computed from t; Keras keeps it in a variable.
// Source: Dozat, "Incorporating Nesterov momentum into Adam", 2016;
// https://keras.io/api/optimizers/Nadam/
struct NadamOptions {
  LearningRateOption learning_rate = 0.001;
  double beta_1 = 0.9;    // In [0, 1).
  double beta_2 = 0.999;  // In [0, 1).
  double epsilon = 1e-7;
};
Optimizer Nadam(const NadamOptions& options = {},
                const OptimizerOptions& shared = {});

// Returns U(t), which is 1 at t = 0, in a bounded time.
double NadamMomentumProduct(double beta_1, int64_t t);

extern const OptimizerKind kNadamKind;

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_NADAM_H_
