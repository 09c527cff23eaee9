#ifndef COMMON_COMPUTE_OPTIMIZERS_MUON_H_
#define COMMON_COMPUTE_OPTIMIZERS_MUON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/optimizer_options.h"

namespace muster {
struct OptimizerKind;

// Muon: the momentum of a matrix, made almost orthogonal by ns_steps
// Newton-Schulz iterations. With learning rate r, gradient g, and a weight w of
// n rows and m columns:
//   M = M * momentum + g
//   X = g + momentum * M if nesterov, otherwise M
//   X = X / (|X| + 1e-7), transposed if n > m; then, ns_steps times:
//     A = X X^T,  X = muon_a * X + (muon_b * A + muon_c * A A) X
//   w -= r * X * sqrt(max(n, m)) * rms_rate
// Adam updates all other variables, with weight decay adam_weight_decay and the
// learning rate r * adam_lr_ratio: those that are no matrices, embeddings
// ("embedding" in the name, if exclude_embeddings), and those whose names have
// a match of a regular expression of exclude_layers.
//
// Needs whole variables: parameter servers, which update parts of variables,
// refuse it. GPUs refuse it, too. An update of an n x m matrix takes
// ns_steps * (4 * n * m + 2 * min(n, m)^2) * min(n, m) operations, on one
// thread.
//
// Slots of the variable's shape, initialized with 0: "momentum", and "velocity"
// of those that Adam updates. Source: Jordan,
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

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_MUON_H_
