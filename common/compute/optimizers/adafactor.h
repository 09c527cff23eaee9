#ifndef COMMON_COMPUTE_OPTIMIZERS_ADAFACTOR_H_
#define COMMON_COMPUTE_OPTIMIZERS_ADAFACTOR_H_

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/optimizer_options.h"

namespace muster {
struct OptimizerKind;

// Adafactor: divides gradients by the square root of estimates of their
// squares, which it factors over rows and columns. With learning rate r,
// gradient g, weight w, and t, the number of the update, counted from 1:
//   b = 1 - t^beta_2_decay
//   q = g^2 + epsilon_1
//   row    = b * row + (1 - b) * mean of q over the last axis
//   column = b * column + (1 - b) * mean of q over the last axis but one
//   v = row / (mean of row over its last axis) * column
//   u = g / sqrt(v)
//   w -= max(epsilon_2, rms(w)) * min(r, 1 / sqrt(t)) * u /
//        max(1, rms(u) / clip_threshold)
// Variables of less than two axes have v = b * v + (1 - b) * q. rms() is the
// root of the mean square of the whole variable.
//
// Needs whole variables: parameter servers, which update parts of variables,
// refuse it. GPUs refuse it, too.
//
// Slots, initialized with 0: "velocity" (v), of the variable's shape; of
// variables of two axes and more "r" (row), without the last axis, and "c"
// (column), without the last axis but one. Source: Shazeer and Stern,
// arXiv:1804.04235; https://keras.io/api/optimizers/adafactor/
struct AdafactorOptions {
  LearningRateOption learning_rate = 0.001;
  double beta_2_decay = -0.8;   // At most 0.
  double epsilon_1 = 1e-30;     // More than 0.
  double epsilon_2 = 1e-3;      // At least 0.
  double clip_threshold = 1.0;  // More than 0.
  // Kept for files of Keras, where it makes no difference.
  bool relative_step = true;
};
Optimizer Adafactor(const AdafactorOptions& options = {},
                    const OptimizerOptions& shared = {});

extern const OptimizerKind kAdafactorKind;

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_ADAFACTOR_H_
