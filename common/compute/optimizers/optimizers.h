#ifndef COMMON_COMPUTE_OPTIMIZERS_OPTIMIZERS_H_
#define COMMON_COMPUTE_OPTIMIZERS_OPTIMIZERS_H_

#include "common/compute/optimizers/adadelta.h"
#include "common/compute/optimizers/adafactor.h"
#include "common/compute/optimizers/adagrad.h"
#include "common/compute/optimizers/adam.h"
#include "common/compute/optimizers/adamax.h"
#include "common/compute/optimizers/ftrl.h"
#include "common/compute/optimizers/lamb.h"
#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/lion.h"
#include "common/compute/optimizers/loss_scale_optimizer.h"
#include "common/compute/optimizers/muon.h"
#include "common/compute/optimizers/nadam.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/optimizers/optimizer_options.h"
#include "common/compute/optimizers/rmsprop.h"
#include "common/compute/optimizers/sgd.h"

namespace muster {

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

// The table of all optimizers (optimizer_kind.h). To add one, include its
// header above and add its kind here; see docs/extending.md.
inline constexpr const OptimizerKind* kOptimizerKinds[] = {
    &kSgdKind,  &kAdamKind,      &kAdamWKind, &kAdagradKind, &kRmsPropKind,
    &kFtrlKind, &kLionKind,      &kNadamKind, &kAdamaxKind,  &kAdadeltaKind,
    &kLambKind, &kAdafactorKind, &kMuonKind,
};

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_OPTIMIZERS_H_
