#ifndef COMMON_COMPUTE_OPTIMIZERS_OPTIMIZERS_H_
#define COMMON_COMPUTE_OPTIMIZERS_OPTIMIZERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/loss_scale.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/optimizer_options.h"

namespace muster {

struct OptimizerKind;

// Optimizers:
//
//   Adam({.learning_rate = 1e-3})
//   Sgd({.learning_rate = CosineDecay({.initial_learning_rate = 0.1,
//                                      .decay_steps = 10'000}),
//        .momentum = 0.9},
//       {.clipnorm = 1})
//   LossScaleOptimizer(Adam(), {.initial_scale = 1024})
//
// Names, defaults and semantics are those of keras.optimizers. Arguments are
// validated when the optimizer is used (UpdateRule::Create()).

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
extern const OptimizerKind kAdamKind;

// Adam with decoupled weight decay, 0.004 by default. The slots are those of
// Adam. Source: Loshchilov and Hutter, arXiv:1711.05101;
// https://keras.io/api/optimizers/adamw/
Optimizer AdamW(const AdamOptions& options = {},
                const OptimizerOptions& shared = {});
extern const OptimizerKind kAdamWKind;

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
  double initial_accumulator_value = 0.1;    // From here on: at least 0.
  double l1_regularization_strength = 0.0;
  double l2_regularization_strength = 0.0;
  double l2_shrinkage_regularization_strength = 0.0;
  double beta = 0.0;
};
Optimizer Ftrl(const FtrlOptions& options = {},
               const OptimizerOptions& shared = {});
extern const OptimizerKind kFtrlKind;

// Lion moves every weight by the same distance, in the direction of the sign of
// an interpolated momentum. With learning rate r, gradient g and weight w:
//   w -= r * sign(beta_1 * m + (1 - beta_1) * g), where sign(0) = 0
//   m = beta_2 * m + (1 - beta_2) * g
// Compared with Adam, the learning rate is usually 3 to 10 times smaller and
// the weight decay 3 to 10 times larger.
//
// Slots: "momentum" (m), of the variable's shape, initialized with 0. Source:
// Chen et al., arXiv:2302.06675; https://keras.io/api/optimizers/lion/
struct LionOptions {
  LearningRateOption learning_rate = 0.001;
  double beta_1 = 0.9;   // In (0, 1].
  double beta_2 = 0.99;  // In [0, 1].
};
Optimizer Lion(const LionOptions& options = {},
               const OptimizerOptions& shared = {});
extern const OptimizerKind kLionKind;

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
extern const OptimizerKind kNadamKind;

// Returns U(t), which is 1 at t = 0, in a bounded time.
double NadamMomentumProduct(double beta_1, int64_t t);

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

// Adadelta scales each step by the size of the steps before it. With learning
// rate r, gradient g and weight w:
//   a = rho * a + (1 - rho) * g^2
//   d = -g * sqrt(b + epsilon) / sqrt(a + epsilon)
//   b = rho * b + (1 - rho) * d^2
//   w += r * d
// The paper has r = 1.
//
// Slots, of the variable's shape and initialized with 0: "accumulated_grad" (a)
// and "accumulated_delta_var" (b). Source: Zeiler, arXiv:1212.5701;
// https://keras.io/api/optimizers/adadelta/
struct AdadeltaOptions {
  LearningRateOption learning_rate = 0.001;
  double rho = 0.95;  // In [0, 1].
  double epsilon = 1e-7;
};
Optimizer Adadelta(const AdadeltaOptions& options = {},
                   const OptimizerOptions& shared = {});
extern const OptimizerKind kAdadeltaKind;

// LAMB, for large batches: Adam, whose update of each variable is scaled to the
// norm of the variable. With learning rate r, gradient g, weight w, and t, the
// number of the update, counted from 1:
//   m = m + (g - m) * (1 - beta_1)
//   v = v + (g^2 - v) * (1 - beta_2)
//   u = (m / (1 - beta_1^t)) / (sqrt(v / (1 - beta_2^t)) + epsilon)
//   w -= r * u * |w| / |u|
// The norms are those of the whole variable; if one of them is 0, the ratio is
// 1.
//
// Needs whole variables: parameter servers reject it if variables are
// partitioned.
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
// Parameter servers reject it, because their slots have the shapes of
// variables.
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
  // Has no effect, as in Keras. Kept for files that Keras wrote.
  bool relative_step = true;
};
Optimizer Adafactor(const AdafactorOptions& options = {},
                    const OptimizerOptions& shared = {});
extern const OptimizerKind kAdafactorKind;

// Muon: the momentum of a matrix, made almost orthogonal by ns_steps
// Newton-Schulz iterations. With learning rate r, gradient g, and a weight w of
// n rows and m columns:
//   M = M * momentum + g
//   X = g + momentum * M if nesterov, otherwise M
//   X = X / (|X| + 1e-7), transposed if n > m; then, ns_steps times:
//     A = X X^T,  X = muon_a * X + (muon_b * A + muon_c * A A) X
//   w -= r * X * sqrt(max(n, m)) * rms_rate
// Adam updates all other variables, with weight decay adam_weight_decay and the
// learning rate r * adam_lr_ratio: those that are not matrices; embeddings, if
// exclude_embeddings ("embedding" in the name); and those whose names match a
// regular expression of exclude_layers.
//
// Needs whole variables: parameter servers reject it if variables are
// partitioned. An update of an n x m matrix takes ns_steps * (4 * n * m + 2 *
// min(n, m)^2) * min(n, m) operations; on a CPU, one thread computes them.
//
// Slots of the variable's shape, initialized with 0: "momentum", and "velocity"
// for the variables that Adam updates. Source: Jordan,
// https://github.com/KellerJordan/Muon; Liu et al., arXiv:2502.16982;
// https://keras.io/api/optimizers/muon/
struct MuonOptions {
  LearningRateOption learning_rate = 0.001;
  double adam_beta_1 = 0.9;          // In [0, 1).
  double adam_beta_2 = 0.999;        // In [0, 1).
  double adam_weight_decay = 0.004;  // At least 0.
  double epsilon = 1e-7;             // At least 0.
  std::vector<std::string> exclude_layers = {};
  bool exclude_embeddings = true;
  double muon_a = 3.4445;
  double muon_b = -4.7750;
  double muon_c = 2.0315;
  double adam_lr_ratio = 1;  // At least 0.
  double momentum = 0.95;    // In [0, 1].
  int64_t ns_steps = 5;      // At least 0.
  bool nesterov = true;
  double rms_rate = 0.2;  // At least 0; 0: updates are not scaled.
};
// The default weight decay of matrices is 0.004.
Optimizer Muon(const MuonOptions& options = {},
               const OptimizerOptions& shared = {});
extern const OptimizerKind kMuonKind;

// AdamW without a schedule: it averages weights instead of lowering the
// learning rate. With learning rate r, gradient g and weight w, at update t =
// 1, 2, ...:
//   r' = r * min(t / warmup_steps, 1)          (r without warmup)
//   v += (g^2 - v) * (1 - beta_2)
//   x = (w - (1 - beta_1) * z) / beta_1
//   z -= r' * g / (sqrt(v / (1 - beta_2^t)) + epsilon)
//   x += (z - x) / t
//   w = (1 - beta_1) * z + beta_1 * x
//
// Keras computes this with JAX. With TensorFlow and PyTorch, Keras' third line
// reads z after the fourth line has changed it, so that beta_1 has no effect;
// see tests/golden/cases/schedule_free.py.
//
// As in Keras, the weights stay w at the end of training and are not replaced
// by the average x, and there is no weight decay unless it is set.
//
// Slots, of the variable's shape: "z", which starts as a copy of the variable
// and is Keras' "momentum", and "velocity" (v), which starts with 0. Source:
// Defazio et al., "The Road Less Scheduled", arXiv:2405.15682;
// https://keras.io/api/optimizers/
struct ScheduleFreeAdamWOptions {
  LearningRateOption learning_rate = 0.0025;
  double beta_1 = 0.9;    // In (0, 1].
  double beta_2 = 0.999;  // In [0, 1).
  double epsilon = 1e-8;
  int64_t warmup_steps = 0;
};
Optimizer ScheduleFreeAdamW(const ScheduleFreeAdamWOptions& options = {},
                            const OptimizerOptions& shared = {});
extern const OptimizerKind kScheduleFreeAdamWKind;

// The table of all optimizers (optimizer_kind.h). To add one, declare it and
// its kind above and add the kind here; see docs/extending.md.
inline constexpr const OptimizerKind* kOptimizerKinds[] = {
    &kSgdKind,     &kAdamKind,
    &kAdamWKind,   &kAdagradKind,
    &kRmsPropKind, &kFtrlKind,
    &kLionKind,    &kNadamKind,
    &kAdamaxKind,  &kAdadeltaKind,
    &kLambKind,    &kAdafactorKind,
    &kMuonKind,    &kScheduleFreeAdamWKind,
};

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_OPTIMIZERS_H_
