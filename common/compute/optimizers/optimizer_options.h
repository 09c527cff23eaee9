#ifndef COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_OPTIONS_H_
#define COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_OPTIONS_H_

#include <optional>
#include <variant>

#include "common/compute/optimizers/learning_rate_schedules.h"
#include "proto/optimizer.pb.h"

namespace muster {

// What every optimizer can be told beside its own hyperparameters:
//
//   AdamW({.learning_rate = 3e-4}, {.weight_decay = 0.1, .clipnorm = 1})
//
// Equivalent to: the arguments of keras.optimizers.Optimizer.
struct OptimizerOptions {
  // Decoupled decay: each update first takes weight_decay * rate * w off the
  // weight w. Absent: Keras' default, 0.004 for AdamW and none for the others.
  std::optional<double> weight_decay;

  // At most one of these is above 0. GradientClipping
  // (common/compute/ops/gradient_clipping.h) says what they do and where.
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
};

// For the functions that make optimizers: one with these options, without a
// rule.
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

// For the same functions: a number belongs to `rule`, the message of
// `optimizer` that has the hyperparameters, a schedule to `optimizer`.
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
