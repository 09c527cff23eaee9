#ifndef COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_OPTIONS_H_
#define COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_OPTIONS_H_

#include <optional>
#include <variant>

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "proto/optimizer.pb.h"

namespace muster {

// Options that all optimizers share:
//
//   AdamW({.learning_rate = 3e-4}, {.weight_decay = 0.1, .clipnorm = 1})
//
// Equivalent to: the arguments of keras.optimizers.Optimizer.
struct OptimizerOptions {
  // Decoupled weight decay: each update first subtracts weight_decay * rate * w
  // from the weight w. Absent: Keras' default, 0.004 for AdamW and none for the
  // others.
  std::optional<double> weight_decay;

  // Gradient clipping; 0 is off. At most one may be set. See GradientClipping
  // (common/compute/ops/gradient_clipping.h).
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
};

// For factory functions: returns an optimizer with these options and no rule.
inline proto::Optimizer WithOptions(const OptimizerOptions& options) {
  proto::Optimizer optimizer;
  if (options.weight_decay.has_value()) {
    optimizer.set_weight_decay(*options.weight_decay);
  }
  if (options.clipnorm != 0) optimizer.set_clipnorm(options.clipnorm);
  if (options.clipvalue != 0) optimizer.set_clipvalue(options.clipvalue);
  if (options.global_clipnorm != 0) {
    optimizer.set_global_clipnorm(options.global_clipnorm);
  }
  return optimizer;
}

// For factory functions: sets the learning rate. A number is a field of `rule`,
// the message of `optimizer` with the hyperparameters. A schedule is a field of
// `optimizer`.
template <typename Rule>
void SetLearningRate(const LearningRateOption& learning_rate, Rule* rule,
                     proto::Optimizer* optimizer) {
  if (const double* number = std::get_if<double>(&learning_rate.value())) {
    rule->set_learning_rate(*number);
  } else {
    *optimizer->mutable_learning_rate_schedule() =
        std::get<proto::LearningRateSchedule>(learning_rate.value());
  }
}

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_OPTIONS_H_
