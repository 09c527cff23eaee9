#ifndef COMMON_COMPUTE_OPTIMIZERS_ADAM_H_
#define COMMON_COMPUTE_OPTIMIZERS_ADAM_H_

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/optimizer_options.h"
#include "proto/optimizer.pb.h"

namespace muster {

// Adam, with rate r and gradient g, at the t-th update:
//   m += (g - m) * (1 - beta_1);  v += (g^2 - v) * (1 - beta_2)
//   w -= r * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(v) + epsilon)
// amsgrad puts the largest v so far in the place of v.
//
// Slots, of the variable's shape and at first 0: "momentum" m, "velocity" v,
// and with amsgrad "velocity_hat", the largest v.
// Source: arXiv:1412.6980, and arXiv:1904.09237 for amsgrad;
// https://keras.io/api/optimizers/adam/
struct AdamOptions {
  LearningRateOption learning_rate = 0.001;
  double beta_1 = 0.9;    // From 0 to less than 1.
  double beta_2 = 0.999;  // From 0 to less than 1.
  double epsilon = 1e-7;
  bool amsgrad = false;
};
proto::Optimizer Adam(const AdamOptions& options = {},
                      const OptimizerOptions& shared = {});

// Adam with a weight_decay of 0.004 unless told otherwise; slots are Adam's.
// Source: arXiv:1711.05101; https://keras.io/api/optimizers/adamw/
proto::Optimizer AdamW(const AdamOptions& options = {},
                       const OptimizerOptions& shared = {});

extern const OptimizerKind kAdamKind;
extern const OptimizerKind kAdamWKind;

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_ADAM_H_
