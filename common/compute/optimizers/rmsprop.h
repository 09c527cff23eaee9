#ifndef COMMON_COMPUTE_OPTIMIZERS_RMSPROP_H_
#define COMMON_COMPUTE_OPTIMIZERS_RMSPROP_H_

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/optimizer_options.h"

namespace muster {
struct OptimizerKind;

// RMSprop, with learning rate r, gradient g and weight w:
//   v = rho * v + (1 - rho) * g^2
//   d = r * g / sqrt(v + epsilon)
//   w -= d
// If centered:
//   a = rho * a + (1 - rho) * g
//   d = r * g / sqrt(v - a^2 + epsilon)
// With momentum, the last line is:
//   m = momentum * m + d
//   w -= m
//
// Slots, of the variable's shape and initialized with 0: "velocity" (v),
// "momentum" (m) if momentum is above 0, and "average_gradient" (a) if
// centered. Source: Hinton, "Neural Networks for Machine Learning", lecture 6e
// (2012); https://keras.io/api/optimizers/rmsprop/
struct RmsPropOptions {
  LearningRateOption learning_rate = 0.001;
  double rho = 0.9;       // In [0, 1].
  double momentum = 0.0;  // In [0, 1].
  double epsilon = 1e-7;
  bool centered = false;
};
Optimizer RmsProp(const RmsPropOptions& options = {},
                  const OptimizerOptions& shared = {});

extern const OptimizerKind kRmsPropKind;

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_RMSPROP_H_
