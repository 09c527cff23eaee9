#ifndef COMMON_COMPUTE_OPTIMIZERS_FTRL_H_
#define COMMON_COMPUTE_OPTIMIZERS_FTRL_H_

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/optimizer_options.h"

namespace muster {
struct OptimizerKind;

// FTRL-Proximal ("follow the regularized leader"), whose L1 penalty sets
// weights to exactly 0. With learning rate r, gradient g, weight w and p =
// learning_rate_power:
//   b = a + g^2
//   z += g + 2 * l2_shrinkage * w - (b^-p - a^-p) / r * w
//   w = (clip(z, -l1, l1) - z) / (b^-p / r + 2 * l2 + beta / r)
//   a = b
//
// Slots, of the variable's shape: "accumulator" (a), initialized with
// initial_accumulator_value, and "linear" (z), initialized with 0. Source:
// McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013;
// https://keras.io/api/optimizers/ftrl/
struct FtrlOptions {
  LearningRateOption learning_rate = 0.001;  // Above 0.
  double learning_rate_power = -0.5;         // At most 0.
  double initial_accumulator_value = 0.1;  // This and those below: at least 0.
  double l1_regularization_strength = 0.0;
  double l2_regularization_strength = 0.0;
  double l2_shrinkage_regularization_strength = 0.0;
  double beta = 0.0;
};
Optimizer Ftrl(const FtrlOptions& options = {},
               const OptimizerOptions& shared = {});

extern const OptimizerKind kFtrlKind;

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_FTRL_H_
